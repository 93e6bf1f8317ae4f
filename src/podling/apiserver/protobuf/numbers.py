"""The protobuf field numbers of the API types, for request bodies from Go clients.

One line for each type: its fields by JSON name in order of number, counting from one; a number in the line
sets where the count goes on. Parentheses are a message whose fields are part of the type itself: Go embeds
the struct, and JSON does not show it. Released numbers never change. A test fails for a type without numbers.
"""

from __future__ import annotations

NUMBERS = {
    "AWSElasticBlockStoreVolumeSource": "volumeID fsType partition readOnly",
    "Affinity": "nodeAffinity podAffinity podAntiAffinity",
    "AggregationRule": "clusterRoleSelectors",
    "AppArmorProfile": "type localhostProfile",
    "AttachedVolume": "name devicePath",
    "AzureDiskVolumeSource": "diskName diskURI cachingMode fsType readOnly kind",
    "AzureFileVolumeSource": "secretName shareName readOnly",
    "Binding": "metadata target",
    "BoundObjectReference": "kind apiVersion name uid",
    "CSIVolumeSource": "driver readOnly fsType volumeAttributes nodePublishSecretRef",
    "Capabilities": "add drop",
    "CephFSVolumeSource": "monitors path user secretFile secretRef readOnly",
    "CinderVolumeSource": "volumeID fsType readOnly secretRef",
    "ClientIPConfig": "timeoutSeconds",
    "ClusterRole": "metadata rules aggregationRule",
    "ClusterRoleBinding": "metadata subjects roleRef",
    "ClusterTrustBundleProjection": "name signerName labelSelector path optional",
    "Condition": "type status observedGeneration lastTransitionTime reason message",
    "ConfigMap": "metadata data binaryData immutable",
    "ConfigMapEnvSource": "(name) optional",
    "ConfigMapKeySelector": "(name) key optional",
    "ConfigMapNodeConfigSource": "namespace name uid resourceVersion kubeletConfigKey",
    "ConfigMapProjection": "(name) items 4 optional",
    "ConfigMapVolumeSource": "(name) items defaultMode optional",
    "Container": (
        "name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe "
        "lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom "
        "terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules"
    ),
    "ContainerExtendedResourceRequest": "containerName resourceName requestName",
    "ContainerImage": "names sizeBytes",
    "ContainerPort": "name hostPort containerPort protocol hostIP",
    "ContainerResizePolicy": "resourceName restartPolicy",
    "ContainerRestartRule": "action exitCodes",
    "ContainerRestartRuleOnExitCodes": "operator values",
    "ContainerState": "waiting running terminated",
    "ContainerStateRunning": "startedAt",
    "ContainerStateTerminated": "exitCode signal reason message startedAt finishedAt containerID",
    "ContainerStateWaiting": "reason message",
    "ContainerStatus": (
        "name state lastState ready restartCount image imageID containerID started allocatedResources "
        "resources volumeMounts user allocatedResourcesStatus stopSignal"
    ),
    "ContainerUser": "linux",
    "DaemonEndpoint": "Port",
    "DeleteOptions": (
        "gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun "
        "ignoreStoreReadErrorWithClusterBreakingPotential"
    ),
    "DownwardAPIProjection": "items",
    "DownwardAPIVolumeFile": "path fieldRef resourceFieldRef mode",
    "DownwardAPIVolumeSource": "items defaultMode",
    "EmptyDirVolumeSource": "medium sizeLimit",
    "Endpoint": "addresses conditions hostname targetRef deprecatedTopology nodeName zone hints",
    "EndpointAddress": "ip targetRef hostname nodeName",
    "EndpointConditions": "ready serving terminating",
    "EndpointHints": "forZones forNodes",
    "EndpointPort": "name port protocol appProtocol",
    "EndpointSlice": "metadata endpoints ports addressType",
    "EndpointSubset": "addresses notReadyAddresses ports",
    "Endpoints": "metadata subsets",
    "EnvFromSource": "prefix configMapRef secretRef",
    "EnvVar": "name value valueFrom",
    "EnvVarSource": "fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef",
    "EphemeralContainer": (
        "(name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe "
        "lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom "
        "terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules) "
        "targetContainerName"
    ),
    "EphemeralVolumeSource": "volumeClaimTemplate",
    "Event": (
        "metadata involvedObject reason message source firstTimestamp lastTimestamp count type eventTime "
        "series action related reportingComponent reportingInstance"
    ),
    "EventSeries": "count lastObservedTime",
    "EventSource": "component host",
    "EventsSeries": "count lastObservedTime",
    "EventsEvent": (
        "metadata eventTime series reportingController reportingInstance action reason regarding related "
        "note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount"
    ),
    "Eviction": "metadata deleteOptions",
    "ExecAction": "command",
    "FCVolumeSource": "targetWWNs lun fsType readOnly wwids",
    "FieldSelectorAttributes": "rawSelector requirements",
    "FieldSelectorRequirement": "key operator values",
    "FileKeySelector": "volumeName path key optional",
    "FlexVolumeSource": "driver fsType secretRef readOnly options",
    "FlockerVolumeSource": "datasetName datasetUUID",
    "ForNode": "name",
    "ForZone": "name",
    "GCEPersistentDiskVolumeSource": "pdName fsType partition readOnly",
    "GRPCAction": "port service",
    "GitRepoVolumeSource": "repository revision directory",
    "GlusterfsVolumeSource": "endpoints path readOnly",
    "HTTPGetAction": "path port host scheme httpHeaders",
    "HTTPHeader": "name value",
    "HostAlias": "ip hostnames",
    "HostIP": "ip",
    "HostPathVolumeSource": "path type",
    "ISCSIVolumeSource": (
        "targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery 10 secretRef "
        "chapAuthSession initiatorName"
    ),
    "ImageVolumeSource": "reference pullPolicy",
    "ImageVolumeStatus": "imageRef",
    "KeyToPath": "key path mode",
    "LabelSelector": "matchLabels matchExpressions",
    "LabelSelectorAttributes": "rawSelector requirements",
    "LabelSelectorRequirement": "key operator values",
    "Lease": "metadata spec",
    "LeaseSpec": (
        "holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy preferredHolder"
    ),
    "Lifecycle": "postStart preStop stopSignal",
    "LifecycleHandler": "exec httpGet tcpSocket sleep",
    "LimitRange": "metadata spec",
    "LimitRangeItem": "type max min default defaultRequest maxLimitRequestRatio",
    "LimitRangeSpec": "limits",
    "LinuxContainerUser": "uid gid supplementalGroups",
    "LoadBalancerIngress": "ip hostname ipMode ports",
    "LoadBalancerStatus": "ingress",
    "LocalObjectReference": "name",
    "LocalSubjectAccessReview": "metadata spec status",
    "ManagedFieldsEntry": "manager operation apiVersion time 6 fieldsType fieldsV1 subresource",
    "NFSVolumeSource": "server path readOnly",
    "Namespace": "metadata spec status",
    "NamespaceCondition": "type status 4 lastTransitionTime reason message",
    "NamespaceSpec": "finalizers",
    "NamespaceStatus": "phase conditions",
    "Node": "metadata spec status",
    "NodeAddress": "type address",
    "NodeAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
    ),
    "NodeAllocatableResourceClaimStatus": "resourceClaimName containers resources",
    "NodeCondition": "type status lastHeartbeatTime lastTransitionTime reason message",
    "NodeConfigSource": "2 configMap",
    "NodeConfigStatus": "assigned active lastKnownGood error",
    "NodeDaemonEndpoints": "kubeletEndpoint",
    "NodeFeatures": "supplementalGroupsPolicy",
    "NodeRuntimeHandler": "name features",
    "NodeRuntimeHandlerFeatures": "recursiveReadOnlyMounts userNamespaces",
    "NodeSelector": "nodeSelectorTerms",
    "NodeSelectorRequirement": "key operator values",
    "NodeSelectorTerm": "matchExpressions matchFields",
    "NodeSpec": "podCIDR externalID providerID unschedulable taints configSource podCIDRs",
    "NodeStatus": (
        "capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse "
        "volumesAttached config runtimeHandlers features declaredFeatures"
    ),
    "NodeSwapStatus": "capacity",
    "NodeSystemInfo": (
        "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion "
        "kubeProxyVersion operatingSystem architecture swap"
    ),
    "NonResourceAttributes": "path verb",
    "NonResourceRule": "verbs nonResourceURLs",
    "ObjectFieldSelector": "apiVersion fieldPath",
    "ObjectMeta": (
        "name generateName namespace selfLink uid resourceVersion generation creationTimestamp "
        "deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers 17 "
        "managedFields"
    ),
    "ObjectReference": "kind namespace name uid apiVersion resourceVersion fieldPath",
    "Overhead": "podFixed",
    "OwnerReference": "kind 3 name uid apiVersion controller blockOwnerDeletion",
    "PersistentVolumeClaimSpec": (
        "accessModes resources volumeName selector storageClassName volumeMode dataSource dataSourceRef "
        "volumeAttributesClassName"
    ),
    "PersistentVolumeClaimTemplate": "metadata spec",
    "PersistentVolumeClaimVolumeSource": "claimName readOnly",
    "PhotonPersistentDiskVolumeSource": "pdID fsType",
    "Pod": "metadata spec status",
    "PodAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
    ),
    "PodAffinityTerm": (
        "labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys"
    ),
    "PodAntiAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
    ),
    "PodCertificateProjection": (
        "signerName keyType maxExpirationSeconds credentialBundlePath keyPath certificateChainPath "
        "userAnnotations"
    ),
    "PodCondition": "type status lastProbeTime lastTransitionTime reason message observedGeneration",
    "PodDNSConfig": "nameservers searches options",
    "PodDNSConfigOption": "name value",
    "PodDisruptionBudget": "metadata spec status",
    "PodDisruptionBudgetSpec": "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy",
    "PodDisruptionBudgetStatus": (
        "observedGeneration disruptedPods disruptionsAllowed currentHealthy desiredHealthy expectedPods "
        "conditions"
    ),
    "PodExtendedResourceClaimStatus": "requestMappings resourceClaimName",
    "PodIP": "ip",
    "PodOS": "name",
    "PodReadinessGate": "conditionType",
    "PodResourceClaim": "name 3 resourceClaimName resourceClaimTemplateName",
    "PodResourceClaimStatus": "name resourceClaimName",
    "PodSchedulingGate": "name",
    "PodSchedulingGroup": "podGroupName",
    "PodSecurityContext": (
        "seLinuxOptions runAsUser runAsNonRoot supplementalGroups fsGroup runAsGroup sysctls windowsOptions "
        "fsGroupChangePolicy seccompProfile appArmorProfile supplementalGroupsPolicy seLinuxChangePolicy"
    ),
    "PodSpec": (
        "volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy "
        "nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC "
        "securityContext imagePullSecrets hostname subdomain affinity schedulerName initContainers "
        "automountServiceAccountToken tolerations hostAliases priorityClassName priority dnsConfig "
        "shareProcessNamespace readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead "
        "topologySpreadConstraints ephemeralContainers setHostnameAsFQDN os hostUsers schedulingGates "
        "resourceClaims resources hostnameOverride 43 schedulingGroup"
    ),
    "PodStatus": (
        "phase conditions message reason hostIP podIP startTime containerStatuses qosClass "
        "initContainerStatuses nominatedNodeName podIPs ephemeralContainerStatuses resize "
        "resourceClaimStatuses hostIPs observedGeneration extendedResourceClaimStatus allocatedResources "
        "resources nodeAllocatableResourceClaimStatuses"
    ),
    "PodTemplate": "metadata template",
    "PodTemplateSpec": "metadata spec",
    "PolicyRule": "verbs apiGroups resources resourceNames nonResourceURLs",
    "PortStatus": "port protocol error",
    "PortworxVolumeSource": "volumeID fsType readOnly",
    "Preconditions": "uid resourceVersion",
    "PreferredSchedulingTerm": "weight preference",
    "PriorityClass": "metadata value globalDefault description preemptionPolicy",
    "Probe": (
        "(exec httpGet tcpSocket grpc) initialDelaySeconds timeoutSeconds periodSeconds successThreshold "
        "failureThreshold terminationGracePeriodSeconds"
    ),
    "ProjectedVolumeSource": "sources defaultMode",
    "QuobyteVolumeSource": "registry volume readOnly user group tenant",
    "RBDVolumeSource": "monitors image fsType pool user keyring secretRef readOnly",
    "ResourceAttributes": (
        "namespace verb group version resource subresource name fieldSelector labelSelector"
    ),
    "ResourceClaim": "name request",
    "ResourceFieldSelector": "containerName resource divisor",
    "ResourceHealth": "resourceID health message",
    "ResourceQuota": "metadata spec status",
    "ResourceQuotaSpec": "hard scopes scopeSelector",
    "ResourceQuotaStatus": "hard used",
    "ResourceRequirements": "limits requests claims",
    "ResourceRule": "verbs apiGroups resources resourceNames",
    "ResourceStatus": "name resources",
    "Role": "metadata rules",
    "RoleBinding": "metadata subjects roleRef",
    "RoleRef": "apiGroup kind name",
    "RuntimeClass": "metadata handler overhead scheduling",
    "SELinuxOptions": "user role type level",
    "ScaleIOVolumeSource": (
        "gateway system secretRef sslEnabled protectionDomain storagePool storageMode volumeName fsType "
        "readOnly"
    ),
    "Scheduling": "nodeSelector tolerations",
    "ScopeSelector": "matchExpressions",
    "ScopedResourceSelectorRequirement": "scopeName operator values",
    "SeccompProfile": "type localhostProfile",
    "Secret": "metadata data type stringData immutable",
    "SecretEnvSource": "(name) optional",
    "SecretKeySelector": "(name) key optional",
    "SecretProjection": "(name) items 4 optional",
    "SecretVolumeSource": "secretName items defaultMode optional",
    "SecurityContext": (
        "capabilities privileged seLinuxOptions runAsUser runAsNonRoot readOnlyRootFilesystem "
        "allowPrivilegeEscalation runAsGroup procMount windowsOptions seccompProfile appArmorProfile"
    ),
    "SelfSubjectAccessReview": "metadata spec status",
    "SelfSubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes",
    "SelfSubjectReview": "metadata status",
    "SelfSubjectReviewStatus": "userInfo",
    "SelfSubjectRulesReview": "metadata spec status",
    "SelfSubjectRulesReviewSpec": "namespace",
    "Service": "metadata spec status",
    "ServiceAccount": "metadata secrets imagePullSecrets automountServiceAccountToken",
    "ServiceAccountTokenProjection": "audience expirationSeconds path",
    "ServicePort": "name protocol port targetPort nodePort appProtocol",
    "ServiceSpec": (
        "ports selector clusterIP type externalIPs 7 sessionAffinity loadBalancerIP "
        "loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort "
        "publishNotReadyAddresses sessionAffinityConfig 17 ipFamilyPolicy clusterIPs ipFamilies "
        "allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution"
    ),
    "ServiceStatus": "loadBalancer conditions",
    "SessionAffinityConfig": "clientIP",
    "SleepAction": "seconds",
    "SlicePort": "name protocol port appProtocol",
    "StorageOSVolumeSource": "volumeName volumeNamespace fsType readOnly secretRef",
    "Subject": "kind apiGroup name namespace",
    "SubjectAccessReview": "metadata spec status",
    "SubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes user groups extra uid",
    "SubjectAccessReviewStatus": "allowed reason evaluationError denied",
    "SubjectRulesReviewStatus": "resourceRules nonResourceRules incomplete evaluationError",
    "Sysctl": "name value",
    "TCPSocketAction": "port host",
    "Taint": "key value effect timeAdded",
    "TokenRequest": "metadata spec status",
    "TokenRequestSpec": "audiences 3 boundObjectRef expirationSeconds",
    "TokenRequestStatus": "token expirationTimestamp",
    "TokenReview": "metadata spec status",
    "TokenReviewSpec": "token audiences",
    "TokenReviewStatus": "authenticated user error audiences",
    "Toleration": "key operator value effect tolerationSeconds",
    "TopologySpreadConstraint": (
        "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "matchLabelKeys"
    ),
    "TypedLocalObjectReference": "apiGroup kind name",
    "TypedObjectReference": "apiGroup kind name namespace",
    "UserInfo": "username uid groups extra",
    "Volume": (
        "name (hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs "
        "persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap "
        "vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO projected storageos "
        "csi ephemeral image)"
    ),
    "VolumeDevice": "name devicePath",
    "VolumeMount": "name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly",
    "VolumeMountStatus": "name mountPath readOnly recursiveReadOnly volumeStatus",
    "VolumeProjection": (
        "secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate"
    ),
    "VolumeResourceRequirements": "limits requests",
    "VolumeStatus": "image",
    "VsphereVirtualDiskVolumeSource": "volumePath fsType storagePolicyName storagePolicyID",
    "WeightedPodAffinityTerm": "weight podAffinityTerm",
    "WindowsSecurityContextOptions": "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess",
}

"""The machine below the kubelet: cgroups, mounts, disk and usage."""

"""The machine below the kubelet: cgroups, disk and usage."""

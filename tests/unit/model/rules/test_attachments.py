"""Kubelet and controller name what is attached as Kubernetes does."""

from podling.model.rules.attachments import attachment_name, unique_name


def test_names_are_those_of_kubernetes() -> None:
    assert unique_name("d.test", "h") == "kubernetes.io/csi/d.test^h"
    # printf hd.testn1 | sha256sum
    hashed = "6c2278253d92c62a47f1654cc2828a83d70f6eb23f34c720415e525fccc50ca1"
    assert attachment_name("d.test", "h", "n1") == f"csi-{hashed}"

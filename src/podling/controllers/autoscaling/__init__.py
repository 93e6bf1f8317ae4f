"""HorizontalPodAutoscalers: as many pods as metrics ask for."""

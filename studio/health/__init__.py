"""`/healthz` and `/readyz`: what load balancers, Kubernetes and monitoring ask."""

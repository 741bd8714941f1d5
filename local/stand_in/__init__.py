"""Stand-ins on one machine for what AWS alone has: API Gateway, S3 Object Lambda, its S3."""

from .machine import OBJECT_LAMBDA_TIMEOUT_S, REST_TIMEOUT_S, StandIn

__all__ = ["OBJECT_LAMBDA_TIMEOUT_S", "REST_TIMEOUT_S", "StandIn"]

"""Stand-ins on one machine for services of AWS: API Gateway, Lambda, S3 and S3 Object Lambda."""

from .machine import OBJECT_LAMBDA_TIMEOUT_S, REST_TIMEOUT_S, StandIn

__all__ = ["OBJECT_LAMBDA_TIMEOUT_S", "REST_TIMEOUT_S", "StandIn"]

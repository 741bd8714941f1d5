"""AWS on one machine: API Gateway, Lambda, S3, S3 Object Lambda and DynamoDB."""

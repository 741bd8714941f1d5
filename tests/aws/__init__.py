"""What imitates AWS: API Gateway, Lambda, S3 Object Lambda, DynamoDB, and a function's rights."""

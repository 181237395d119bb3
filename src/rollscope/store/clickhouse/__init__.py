"""ClickHouse as a store that many people and many runs share."""

module github.com/healthlab-dev/healthlab/adapters/devices

go 1.26.0

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/google/uuid v1.6.0
	github.com/muktihari/fit v0.26.1
	github.com/shopspring/decimal v1.6.0 // indirect
	github.com/stretchr/testify v1.12.1
	github.com/tidwall/btree v1.8.2 // indirect
	golang.org/x/oauth2 v0.37.0
	golang.org/x/text v0.43.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/time v0.16.0 // indirect
)

require github.com/healthlab-dev/healthlab v0.0.0

replace github.com/healthlab-dev/healthlab => ../..

module github.com/healthlab-dev/healthlab/adapters/sqlite

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/muktihari/fit v0.26.1 // indirect
	github.com/ncruces/go-sqlite3 v0.37.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/text v0.43.0 // indirect
)

require (
	github.com/ncruces/go-sqlite3-wasm/v6 v6.5.35401 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

require github.com/healthlab-dev/healthlab v0.0.0

require github.com/healthlab-dev/healthlab/adapters/devices v0.0.0

replace (
	github.com/healthlab-dev/healthlab => ../..
	github.com/healthlab-dev/healthlab/adapters/devices => ../../adapters/devices
)

package api //nolint:revive // api_gen.go has the package comment

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config config.yaml contract.json

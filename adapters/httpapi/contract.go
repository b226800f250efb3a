package httpapi

import (
	"bytes"
	_ "embed"
	"net/http"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

//go:generate go run ./internal/openapi/gen openapi openapi_gen.json

//go:embed openapi_gen.json
var document []byte

// OpenAPI returns the contract, OpenAPI 3.1 as JSON, under the default names of
// headers and media types.
func OpenAPI() []byte { return bytes.Clone(document) }

// documentFor is the contract under the names of c.
func documentFor(c Config) []byte {
	out := OpenAPI()
	for _, name := range [][2]string{
		{`"` + defaultKeyHeader + `"`, `"` + c.KeyHeader + `"`},
		{`"` + defaultLinkTokenHeader + `"`, `"` + c.LinkTokenHeader + `"`},
		{`"` + defaultManagementKeyHeader + `"`, `"` + c.ManagementKeyHeader + `"`},
		{mediaType(defaultServiceName), mediaType(c.ServiceName)},
	} {
		out = bytes.ReplaceAll(out, []byte(name[0]), []byte(name[1]))
	}
	return out
}

// mediaType is that of aggregates as Parquet.
func mediaType(service string) string { return "application/vnd." + service + ".tar+gzip+parquet" }

func (a api) contractOperations() []operation {
	doc := documentFor(a.Config)
	return []operation{{
		id: "get_contract", pattern: "GET /openapi.json",
		handle: func(w http.ResponseWriter, r *http.Request) error {
			if err := wire.From(r).Err(); err != nil {
				return err
			}
			return wire.Bytes(w, http.StatusOK, "application/json", doc)
		},
	}}
}

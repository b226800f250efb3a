package httpapi

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"sync"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

//go:embed openapi/*.json
var contractParts embed.FS

// document joins the parts of the contract on first use. The parts are part of the
// program, so an error is a bug that TestContractIsJoined finds.
var document = sync.OnceValue(func() []byte {
	folder, err := fs.Sub(contractParts, "openapi")
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	joined, err := openapi.Join(folder)
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	return openapi.WithExtras(joined)
})

// OpenAPI returns the contract as an OpenAPI 3.1 document in JSON, with the default names
// of headers and media types. Safe for concurrent use; the caller owns the bytes.
func OpenAPI() []byte { return bytes.Clone(document()) }

// documentFor returns the contract with the header names and media types of c. The caller does
// not write to it.
func documentFor(c Config) []byte {
	out := document()
	for _, name := range [][2]string{
		{`"` + defaultKeyHeader + `"`, `"` + c.KeyHeader + `"`},
		{`"` + defaultLinkTokenHeader + `"`, `"` + c.LinkTokenHeader + `"`},
		{`"` + defaultManagementKeyHeader + `"`, `"` + c.ManagementKeyHeader + `"`},
		{mediaType(defaultServiceName), mediaType(c.ServiceName)},
	} {
		if name[0] != name[1] {
			out = bytes.ReplaceAll(out, []byte(name[0]), []byte(name[1]))
		}
	}
	return out
}

// mediaType returns the media type of an archive of Parquet files.
func mediaType(service string) string { return "application/vnd." + service + ".tar+gzip+parquet" }

func (a api) contractOperations() []server.Operation {
	doc := documentFor(a.Config)
	return []server.Operation{{
		ID: "get_contract", Pattern: "GET /openapi.json",
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			if err := wire.From(r).Err(); err != nil {
				return err
			}
			return wire.Bytes(w, http.StatusOK, "application/json", doc)
		},
	}}
}

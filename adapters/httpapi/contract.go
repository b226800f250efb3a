package httpapi

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

//go:embed openapi/*.json
var contractParts embed.FS

// contractExtras holds the parts of the contract that are generated from Go code, such as events. A test compares it
// with the code.
//
//go:generate go run ./internal/openapi/extras/gen openapi/generated/extras.json
//go:embed openapi/generated/extras.json
var contractExtras []byte

// errorTypes lists the error types of the contract, one per line, each with the directories of the packages that return
// it.
//
//go:embed internal/openapi/extras/error_types.txt
var errorTypes string

// document joins the embedded files of the contract on first use. It panics if they cannot be joined, which
// TestContract_partsJoinWithoutConflict prevents.
var document = sync.OnceValue(func() []byte {
	folder, err := fs.Sub(contractParts, "openapi")
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	joined, err := openapi.Join(folder)
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	return openapi.WithExtras(joined, contractExtras)
})

// OpenAPI returns the contract as an OpenAPI 3.1 document in JSON, with the default names
// of headers and media types. Safe for concurrent use; the caller owns the bytes.
func OpenAPI() []byte { return bytes.Clone(document()) }

// documentFor returns the contract of one configuration: its operations, address, names of headers and media types,
// and security scheme. The caller must not write to the bytes.
func (a *api) documentFor(ops []server.Operation) ([]byte, error) {
	m := openapi.Mount{Operations: []string{contractID}, Queries: a.Aggregate != nil || a.Continuous != nil, Uploads: a.Health != nil}
	for i := range ops {
		m.Operations = append(m.Operations, ops[i].ID)
	}
	for line := range strings.Lines(errorTypes) {
		words := strings.Fields(line)
		mounted := func(p Part) bool { return slices.Contains(words[1:], p.domain) }
		if slices.Contains(words[1:], "httpapi") || slices.ContainsFunc(a.Config.Parts, mounted) {
			m.ErrorTypes = append(m.ErrorTypes, words[0])
		}
	}
	if a.Webhooks != nil || a.SendsEvents {
		for _, p := range a.Config.Parts {
			if p.events != nil {
				for _, e := range p.events() {
					m.Events = append(m.Events, e.Name)
				}
			}
		}
	}
	out, err := openapi.Subset(document(), m)
	if err != nil {
		return nil, err
	}
	if out, err = openapi.Adapt(out, a.URL, a.SignIn); err != nil {
		return nil, err
	}
	for _, name := range [][2]string{
		{`"` + defaultKeyHeader + `"`, `"` + a.KeyHeader + `"`},
		{`"` + defaultLinkTokenHeader + `"`, `"` + a.LinkTokenHeader + `"`},
		{`"` + defaultManagementKeyHeader + `"`, `"` + a.ManagementKeyHeader + `"`},
		{mediaType(defaultServiceName), mediaType(a.ServiceName)},
	} {
		if name[0] != name[1] {
			out = bytes.ReplaceAll(out, []byte(name[0]), []byte(name[1]))
		}
	}
	return out, nil
}

func mediaType(service string) string { return "application/vnd." + service + ".tar+gzip+parquet" }

// contractID is the id of the operation that serves the contract.
const contractID = "get_contract"

func (a api) contractOperation(ops []server.Operation) server.Operation {
	document := sync.OnceValues(func() ([]byte, error) { return a.documentFor(ops) }) // on first use
	return server.Operation{
		ID: contractID, Pattern: "GET /openapi.json",
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			if err := wire.From(r).Err(); err != nil {
				return err
			}
			doc, err := document()
			if err != nil {
				return err
			}
			return wire.Bytes(w, http.StatusOK, "application/json", doc)
		},
	}
}

package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// A host makes a key for its first team, mounts the service beside its own pages, and
// keeps its own middleware around it.
func Example() {
	clinic := healthlab.TeamID{UUID: uuid.MustParse("0d4b1f5e-0000-4000-8000-000000000001")}
	_, sum, err := httpapi.NewKey(rand.Reader, healthlab.Sandbox, httpapi.EU)
	if err != nil {
		panic(err)
	}
	keys := httpapi.Keys{{Team: clinic, Sum: sum}}
	whose, err := httpapi.KeyAuth(keys, healthlab.Sandbox, httpapi.EU, nil)
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/health/", http.StripPrefix("/health", httpapi.Handler(httpapi.Config{Authenticate: whose})))

	for _, path := range []string{"/health/openapi.json", "/health/no/such/path"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code, w.Header().Get("Content-Type"))
	}
	// Output:
	// /health/openapi.json 200 application/json
	// /health/no/such/path 404 application/json
}

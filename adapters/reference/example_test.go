package reference_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/reference"
)

// The pages of an API with one operation.
func Example() {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"info": {"title": "Clinic"}, "paths": {"/v2/user/{user_id}": {"get":
			{"operationId": "get_user", "tags": ["users"], "summary": "Read a user", "responses": {"200": {"description": "The user."}}}}}}`)
	})
	w := httptest.NewRecorder()
	reference.Handler(api).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/users", http.NoBody))
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "Read a user"))
	// Output: 200 true
}

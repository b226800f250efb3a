package double_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
)

func Example() {
	d, truth := double.Dexcom(double.Options{People: []*double.Person{double.NewPerson(1, noon, 1)}})
	server := httptest.NewServer(d)
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/v2/oauth2/login?client_id=id&response_type=code&state=12345678&redirect_uri=https://app.example/back")
	if err != nil {
		fmt.Println(err)
		return
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Println(strings.Contains(string(page), "This is a double of Dexcom"))
	fmt.Println(len(truth(double.NewPerson(1, noon, 1))["glucose"]), "readings")
	// Output:
	// true
	// 97 readings
}

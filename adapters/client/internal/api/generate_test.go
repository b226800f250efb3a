package api_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fetch = flag.Bool("clients", false, "fetch the generator if this machine lacks it")

// The types are what the generator makes of the contract. The test runs where the generator is in
// the module cache, or with -clients, and never in CI.
func TestGeneratedTypes_areUpToDate(t *testing.T) {
	if os.Getenv("CI") != "" && !*fetch {
		t.Skip("CI generates no code")
	}
	line, err := os.ReadFile("generate.go")
	if err != nil {
		t.Fatal(err)
	}
	generator := regexp.MustCompile(`\S+/cmd/oapi-codegen@\S+`).FindString(string(line))
	if generator == "" {
		t.Fatal("generate.go names no generator")
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), "go", append([]string{"run", generator}, args...)...)
		c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if !*fetch {
			c.Env = append(c.Env, "GOPROXY=file://"+filepath.ToSlash(strings.TrimSpace(string(cache)))+"/cache/download", "GOSUMDB=off")
		}
		return c.CombinedOutput()
	}
	if out, err := program("-version"); err != nil {
		if *fetch {
			t.Fatalf("%v: %s", err, out)
		}
		t.Skip("the generator is not on this machine: make clients")
	}
	config, err := os.ReadFile("config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	made := filepath.Join(dir, "api_gen.go")
	if err := os.WriteFile(file, []byte(strings.Replace(string(config), "output: api_gen.go", "output: "+made, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := program("-config", file, "contract.json"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("api_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Fatal("api_gen.go is not what the generator makes of contract.json: run go generate in adapters/client")
	}
}

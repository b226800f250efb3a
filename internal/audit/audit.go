// Command audit fails if the release of a module that this module requires directly is more than a
// year older than that module's newest release. It asks the module proxy of the go command. If
// the proxy does not answer, audit says so and succeeds.
//
//	go run ./internal/audit
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// most is how much older the used release of a module may be than the module's newest release.
const most = 365 * 24 * time.Hour

// module has those fields of the output of go list that the command uses.
type module struct {
	Path     string
	Version  string
	Time     *time.Time
	Indirect bool
	Main     bool
	Update   *module
	Error    *struct{ Err string }
}

func main() {
	modules, err := list(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
	late, unknown := behind(modules)
	if len(unknown) == len(modules) {
		fmt.Println("audit: modules not checked: the module proxy does not answer")
		return
	}
	for _, line := range unknown {
		fmt.Println("audit: not checked:", line)
	}
	for _, line := range late {
		fmt.Fprintln(os.Stderr, "audit: more than 12 months behind its newest release:", line)
	}
	if len(late) > 0 {
		os.Exit(1)
	}
	fmt.Printf("audit: %d direct modules are within 12 months of their newest release\n", len(modules)-len(unknown))
}

// list asks go list for the direct modules and their newest releases.
func list(ctx context.Context) ([]module, error) {
	names, err := golist(ctx, "-f", "{{if not (or .Main .Indirect)}}{{.Path}}{{end}}", "all")
	if err != nil {
		return nil, err
	}
	out, err := golist(ctx, append([]string{"-u", "-e", "-json"}, strings.Fields(string(names))...)...)
	if err != nil {
		return nil, err
	}
	return direct(bytes.NewReader(out))
}

func golist(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-m"}, args...)...) //nolint:gosec // names of our own modules
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	return out, nil
}

// direct returns the direct modules in the output of go list.
func direct(from io.Reader) (out []module, err error) {
	for dec := json.NewDecoder(from); ; {
		var m module
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if !m.Main && !m.Indirect {
			out = append(out, m)
		}
	}
}

// behind returns the modules whose used release is too old (late), and those whose newest release is not known.
func behind(modules []module) (late, unknown []string) {
	for _, m := range modules {
		switch {
		case m.Error != nil || m.Time == nil || m.Update != nil && m.Update.Time == nil:
			unknown = append(unknown, m.Path)
		case m.Update != nil && m.Update.Time.Sub(*m.Time) > most:
			late = append(late, fmt.Sprintf("%s %s of %s; the newest is %s of %s", m.Path, m.Version, m.Time.Format(time.DateOnly),
				m.Update.Version, m.Update.Time.Format(time.DateOnly)))
		}
	}
	return late, unknown
}

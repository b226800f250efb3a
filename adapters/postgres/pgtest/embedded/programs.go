package embedded

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// places lists the folders in which packages of operating systems install the server's programs. A * stands for the
// version.
var places = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib*/postgresql*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
}

// find returns the folder of the server's programs: named, or if it is empty the first of installed. The programs must
// have the major version, or if version is 0 at least the oldest supported one.
func find(ctx context.Context, named string, version int) (string, error) {
	candidates := []string{named}
	if named == "" {
		candidates = installed()
	}
	var have []string
	for _, dir := range candidates {
		switch v := versionOf(ctx, dir); {
		case v == 0:
		case v < oldest:
			have = append(have, strconv.Itoa(v))
		case version == 0 || v == version:
			return dir, nil
		default:
			have = append(have, strconv.Itoa(v))
		}
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case len(have) == 0:
		return "", fmt.Errorf("%w: the server's programs are missing: install the server package (on Debian: apt-get install postgresql)",
			healthlab.Unimplemented)
	case version == 0:
		return "", fmt.Errorf("%w: PostgreSQL must have version %d or later; installed: %s", healthlab.Unimplemented, oldest, strings.Join(have, ", "))
	default:
		return "", fmt.Errorf("%w: the folder has data of PostgreSQL version %d; installed: %s; install that version, or upgrade the data with pg_upgrade",
			healthlab.Precondition, version, strings.Join(have, ", "))
	}
}

// installed returns the folders with the server's programs: that of the search path first, then the others by
// descending version.
func installed() []string {
	var found []string
	for _, place := range places {
		some, _ := filepath.Glob(filepath.Join(place, "initdb"))
		for _, path := range some {
			found = append(found, filepath.Dir(path))
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return number(b) - number(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = slices.Insert(found, 0, filepath.Dir(path))
		}
	}
	return found
}

// versionOf returns the major version of the programs in a folder; 0 if it is unknown.
func versionOf(ctx context.Context, dir string) int {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // it looks for the program
	if err != nil {
		return 0
	}
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	return number(string(out))
}

// number returns the first number in a text, such as 15 in "/usr/lib/postgresql/15/bin" and in "postgres (PostgreSQL)
// 15.1"; 0 without one.
func number(s string) int {
	digits := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}
	return n
}

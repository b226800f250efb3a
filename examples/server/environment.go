package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// variablePrefix begins the names of environment variables that are settings. Those of tests and
// tools begin with HEALTHLABTEST_.
const variablePrefix = "HEALTHLAB"

// checkVariables refuses environment variables, each NAME=VALUE, that begin as settings do and are
// none.
func checkVariables(environment []string, f *flag.FlagSet) error {
	var known []string
	f.VisitAll(func(one *flag.Flag) {
		known = append(known, variablePrefix+"_"+strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_")))
	})
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, variablePrefix+"_") && !slices.Contains(known, name) {
			nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
			return fmt.Errorf("the environment variable %s is no setting; the nearest one is %s", name, nearest)
		}
	}
	return nil
}

// distance is how many letters have to be changed, added or removed to make one text of another
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the first letters of a, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

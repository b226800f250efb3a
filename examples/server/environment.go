package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// variablePrefix is the prefix of environment variables that set a flag. Variables of tests and tools begin with
// HEALTHLABTEST_.
const variablePrefix = "HEALTHLAB"

// checkVariables refuses a variable (NAME=VALUE) whose name begins with variablePrefix and names no flag of f, and one
// whose value has another type than the flag. It accepts an empty value for every flag.
func checkVariables(environment []string, f *flag.FlagSet) error {
	known := map[string]*flag.Flag{}
	f.VisitAll(func(one *flag.Flag) {
		known[variablePrefix+"_"+strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_"))] = one
	})
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, variablePrefix+"_") {
			continue
		}
		setting := known[name]
		if setting == nil {
			return fmt.Errorf("the environment variable %s is no setting; the nearest one is %s", name, nearestOf(name, slices.Sorted(maps.Keys(known))))
		}
		if value == "" { // an empty variable is ignored
			continue
		}
		if err := checkValue(setting, value); err != nil {
			return fmt.Errorf("the environment variable %s: %w", name, err)
		}
	}
	return nil
}

func nearestOf(to string, names []string) string { return nearest.Names(to, names, 1)[0] }

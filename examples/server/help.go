package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// runHelp executes "server help" (overview), "server help GROUP" (a group of flags) and "server help all".
func runHelp(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 1 {
		return fmt.Errorf("help takes the name of one group, or all")
	}
	var out strings.Builder
	if len(args) == 0 {
		printHelp(&out)
	} else if err := printGroups(&out, args[0]); err != nil {
		return err
	}
	_, err := io.WriteString(stdout, out.String())
	return err
}

// printHelp prints the commands and the groups of flags, with an example of each.
func printHelp(out *strings.Builder) {
	out.WriteString("server is the whole service: users, health data, queries, lab orders and signed events over HTTP.\n\n" +
		"  server [COMMAND] [flags]\n\nCommands\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-9s%s\n           %s\n", c.name, c.does, c.example)
	}
	out.WriteString("\nGroups of flags: server help GROUP explains them, server help all those of all groups\n")
	for _, g := range new(config).flagGroups() {
		fmt.Fprintf(out, "  %-9s%s\n           server %s\n", g.name, g.about, g.example)
	}
	fmt.Fprintf(out, "\nVariables and files\n"+
		"  Each flag is also an environment variable, %[1]s_DATABASE_URL for -database-url, and a line\n"+
		"  \"database-url VALUE\" of the file of -config. A flag wins over the variable, and the variable over\n"+
		"  the file. server -print-config prints what holds.\n           %[1]s_ADDR=127.0.0.1:9000 server\n", variablePrefix)
}

// printGroups prints the flags of the named group, or of all groups.
func printGroups(out *strings.Builder, name string) error {
	var names []string
	for _, g := range new(config).flagGroups() {
		names = append(names, g.name)
		if name != g.name && name != "all" {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(out, "%s: %s\n  server %s\n", g.name, g.about, g.example)
		f := flag.NewFlagSet("", flag.ContinueOnError)
		g.add(f)
		f.VisitAll(func(one *flag.Flag) { printFlag(out, one) })
	}
	if out.Len() == 0 {
		return fmt.Errorf("%q is no group of flags; the nearest one is %s, and server help lists all", name, nearestOf(name, names))
	}
	return nil
}

// printFlag prints a flag with its usage. It adds the default, unless that is a zero value or the usage contains it.
func printFlag(out *strings.Builder, f *flag.Flag) {
	value, usage := flag.UnquoteUsage(f)
	fmt.Fprintf(out, "  %s\n      %s", strings.TrimSpace("-"+f.Name+" "+value), usage)
	zero := f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0"
	if !zero && !strings.Contains(usage, "(default") {
		fmt.Fprintf(out, " (default %s)", f.DefValue)
	}
	out.WriteString("\n")
}

// checkArguments checks the arguments against the flags of f. It refuses an unknown flag, with the most similar one as
// a suggestion, a value of another type than its flag, and an argument that is not a flag. help reports whether the
// arguments contain -h or -help. Package flag would print all flags after an error.
func checkArguments(args []string, f *flag.FlagSet) (help bool, err error) {
	for i := 0; i < len(args); i++ {
		if len(args[i]) < 2 || args[i][0] != '-' {
			return false, fmt.Errorf("arguments other than flags are not expected after the command; each flag begins with -")
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(args[i][1:], "-"), "=")
		if name == "h" || name == "help" {
			return true, nil
		}
		one := f.Lookup(name)
		if one == nil {
			return false, fmt.Errorf("-%s is no flag; the nearest one is -%s, and %s", name, nearestOf(name, flagNames(f)), helpHint(f))
		}
		if boolean, ok := one.Value.(interface{ IsBoolFlag() bool }); ok && boolean.IsBoolFlag() {
			if !hasValue {
				continue
			}
		} else if !hasValue {
			if i++; i == len(args) {
				return false, fmt.Errorf("-%s needs a value", name)
			}
			value = args[i]
		}
		if err := checkValue(one, value); err != nil {
			return false, err
		}
	}
	return false, nil
}

// checkValue refuses a value that has another type than its flag.
func checkValue(f *flag.Flag, value string) error {
	typed, ok := f.Value.(flag.Getter)
	if !ok {
		return nil
	}
	var err error
	var want string
	switch typed.Get().(type) {
	case bool:
		want = "true or false"
		_, err = strconv.ParseBool(value)
	case int:
		want = "a whole number"
		_, err = strconv.Atoi(value)
	case float64:
		want = "a number such as 0.5"
		_, err = strconv.ParseFloat(value, 64)
	case time.Duration:
		want = "a duration such as 90s, 5m or 1h30m"
		_, err = time.ParseDuration(value)
	}
	if err != nil {
		return fmt.Errorf("-%s must be %s", f.Name, want)
	}
	return nil
}

func helpHint(f *flag.FlagSet) string {
	if f.Name() == serverFlags {
		return "server help lists all"
	}
	return f.Name() + " -help lists all"
}

func flagNames(f *flag.FlagSet) []string {
	var names []string
	f.VisitAll(func(one *flag.Flag) { names = append(names, one.Name) })
	return names
}

// parseOwn parses the arguments of a command with flags of its own. If they ask for help, it prints the help and
// returns done = true.
func parseOwn(f *flag.FlagSet, args []string, stdout io.Writer) (done bool, err error) {
	f.SetOutput(io.Discard)
	help, err := checkArguments(args, f)
	if err != nil {
		return false, err
	}
	if !help {
		return false, f.Parse(args)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s [flags]\n", f.Name())
	f.VisitAll(func(one *flag.Flag) { printFlag(&out, one) })
	_, err = io.WriteString(stdout, out.String())
	return true, err
}

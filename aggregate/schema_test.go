package aggregate_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

var update = flag.Bool("update", false, "write docs/query-columns.md")

// docs/query-columns.md lists what queries can name.
func TestSchema_documentListsEveryColumn(t *testing.T) {
	s := aggregate.Describe()
	var b strings.Builder
	b.WriteString(`# Tables and columns of queries

What a query can name, as ` + "`GET /aggregate/v1/schema`" + ` lists it. Where a read of the API has
another name for the same value in the same unit, a query takes that name, too; the result
has the name of the first column here. Times are on the person's clock, unless the type is
` + "`instant`" + `. Nulls are skipped by every function.

Functions: ` + "`" + strings.Join(s.Functions, "`, `") + "` and `percentile_0` to `percentile_100`" + `.
[Measures of glucose](concepts/glucose.md) has the formulas of those for glucose, and the bands.

`)
	columns := func(list []aggregate.ColumnSchema) {
		b.WriteString("| column | also | type | unit | |\n|---|---|---|---|---|\n")
		for _, c := range list {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Name, code(c.Aliases), c.Type, c.Unit, c.Doc)
		}
		b.WriteString("\n")
	}
	for _, table := range s.Tables {
		fmt.Fprintf(&b, "## Table `%s`\n\n", table.Name)
		if len(table.Aliases) > 0 {
			fmt.Fprintf(&b, "Also %s. ", code(table.Aliases))
		}
		fmt.Fprintf(&b, "`index` is a %s.\n\n", table.IndexType)
		columns(table.Columns)
	}
	b.WriteString("## Derived values of a sleep session (`value_macro`)\n\n")
	columns(s.ValueMacros)
	b.WriteString("## Timeseries\n\nA column is written `{\"timeseries\":NAME,\"field\":COLUMN}`. Every timeseries has the columns\n" +
		"`source_provider`, `source_type`, `source_app_id`, `source_workout_id`, `source_sport`, `timezone_offset` and `type`.\n\n| timeseries | columns of its own |\n|---|---|\n")
	for _, r := range s.Timeseries {
		var own []string
		for _, c := range r.Columns[7:] {
			unit := ""
			if c.Unit != "" {
				unit = " (" + c.Unit + ")"
			}
			own = append(own, "`"+c.Name+"`"+unit)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Name, strings.Join(own, ", "))
	}
	const file = "../docs/query-columns.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./aggregate -run TestSchema_documentListsEveryColumn -update")
}

func code(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

// Every name of the schema is one that a query can use, and every alias asks the same.
func TestSchema_everyNameAndAliasCanBeQueried(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), &aggregate.Options{
		LabResults: func(context.Context, healthlab.TeamID, healthlab.UserID) ([]aggregate.LabResult, error) {
			return nil, nil
		},
	})
	ask := func(table, column, where string) (string, error) {
		req, err := s.Decode([]byte(`{"timeframe":{"type":"relative","anchor":"2026-03-04","past":{"unit":"day","value":7}},
			"queries":[{"select":[{"`+table+`":"`+column+`"}]`+where+`}]}`), false)
		if err != nil {
			return "", err
		}
		out, err := s.Query(t.Context(), team, user, &req)
		if err != nil {
			return "", err
		}
		return out.Frames[0].Columns[1].Name, nil
	}
	aliases := 0
	for _, table := range aggregate.Describe().Tables {
		for _, name := range append(table.Aliases, table.Name) {
			for _, c := range table.Columns {
				if c.Type == tables.TypeList {
					continue // a subquery reads it
				}
				want, err := ask(table.Name, c.Name, "")
				require.NoError(t, err, "%s.%s", table.Name, c.Name)
				for _, alias := range c.Aliases {
					aliases++
					got, err := ask(name, alias, `,"where":"`+alias+` IS NOT NULL AND `+name+`.`+alias+` IS NOT NULL"`)
					require.NoError(t, err, "%s.%s", name, alias)
					require.Equal(t, want, got)
				}
			}
		}
	}
	require.Greater(t, aliases, 30)
	_, err := ask("activity", "distance_metre", "")
	require.ErrorContains(t, err, "distance_meter", "the nearest name is suggested")
}

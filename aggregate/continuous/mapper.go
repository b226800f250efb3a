package continuous

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// Mapper makes FHIR Observations of vital signs from a column of a continuous query.
type Mapper struct {
	// Name is the name in Query.FHIRMappers.
	Name string
	// Resource is the slug of the samples, such as heartrate.
	Resource string
	// Func is the function over the samples of a bucket: aggregate.Mean, Median, Min or Max.
	Func aggregate.Func
	// Column is the name of the column.
	Column string
	// Period is the length of a bucket, a day or longer.
	Period aggregate.Period
}

var mappers = []Mapper{
	{Name: "body_weight", Resource: "weight"},
	{Name: "heart_rate", Resource: "heartrate"},
	{Name: "respiratory_rate", Resource: "respiratory_rate"},
}

var mappedFuncs = []aggregate.Func{aggregate.Mean, aggregate.Median, aggregate.Min, aggregate.Max}

// Mappers returns the mappers of a query: one for each column that is the mean, median, least or greatest of
// weight, heart rate or respiratory rate. A query whose only group key is not a date truncation of a day or
// longer has none.
func Mappers(q *aggregate.Query) (out []Mapper) {
	if len(q.GroupBy) != 1 {
		return nil
	}
	by, ok := q.GroupBy[0].(aggregate.DateTrunc)
	if !ok || by.Period.Unit == aggregate.Minute || by.Period.Unit == aggregate.Hour {
		return nil
	}
	for _, e := range q.Select {
		a, ok := e.(aggregate.Aggregate)
		if !ok || !slices.Contains(mappedFuncs, a.Func) {
			continue
		}
		f, ok := a.Arg.(aggregate.Field)
		i := slices.IndexFunc(mappers, func(m Mapper) bool { return ok && f == aggregate.Samples(m.Resource) })
		if i >= 0 {
			m := mappers[i]
			m.Func, m.Column, m.Period = a.Func, string(a.Func)+"."+f.Resource+"."+f.Field, by.Period
			out = append(out, m)
		}
	}
	return out
}

// mapperNames returns the names of the query's mappers without duplicates.
func mapperNames(q *aggregate.Query) []string {
	out := []string{}
	for _, m := range Mappers(q) {
		if !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

func checkMappers(p *healthlab.Problems, q *aggregate.Query) {
	if len(Mappers(q)) > 0 {
		return
	}
	var slugs, funcs []string
	for _, m := range mappers {
		slugs = append(slugs, m.Resource)
	}
	for _, f := range mappedFuncs {
		funcs = append(funcs, string(f))
	}
	p.Add("not_supported", "must select a column that is "+strings.Join(funcs, ", ")+" of the samples of "+strings.Join(slugs, ", ")+
		", and have a date truncation of a day or longer as the only group key", "export_preferences", "fhir_observations")
}

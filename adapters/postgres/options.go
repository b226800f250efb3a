package postgres

import "time"

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Schema is the schema of the tables. Default healthlab.
	Schema string
	// Now is the store's clock. Default: the clock of the database, accurate to half of a round trip.
	Now func() time.Time
	// RowSecurity names the team of each query and of each transaction's writes to the row-level security policies.
	// Use it if the role of the pool does not own the tables. Statements about one team then reach only rows of that
	// team and rows without a team. Queries by user or due time, and writes for several teams, reach all rows.
	RowSecurity bool
	// Migrating is called by [Migrate] before it makes each table or index that an older program's database lacks. n
	// counts from 1. Default: none.
	Migrating func(n, total int, name string)
}

func engineOptions(opts *Options) Options {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Schema == "" {
		o.Schema = "healthlab"
	}
	return o
}

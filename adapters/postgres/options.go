package postgres

import "time"

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Schema is the schema of the tables. Default healthlab.
	Schema string
	// Now is the store's clock. Default: the clock of the database, to the half of a round trip.
	Now func() time.Time
	// RowSecurity names the team of each query, and of the writes of each transaction, to the policies of
	// row-level security. Set it where the role of the pool does not own the tables: then what is about one
	// team reaches rows of that team and rows without a team alone. Queries by user or by due time, and
	// writes for several teams, reach all rows.
	RowSecurity bool
	// Migrating is called by [Migrate] before it makes each table or index in a database of an older program. n counts
	// from 1. Default: none.
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

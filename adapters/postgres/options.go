package postgres

import "time"

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Schema is the schema of the tables. Default healthlab.
	Schema string
	// Now is the store's clock. Default: the clock of the database, to the half of a round trip.
	Now func() time.Time
	// RowSecurity sets the team for the policies of row-level security: of each query, and of the writes of each
	// transaction. Use it if the role of the pool does not own the tables. Statements about one team then reach only
	// rows of that team and rows without a team. Queries by user or due time, and writes for several teams, reach all
	// rows.
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

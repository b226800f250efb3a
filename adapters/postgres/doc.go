// Package postgres stores rows in PostgreSQL (15 or later), for services of several processes. [Store] is
// a store.Store, over which package adapters/stores has the stores of all domain packages.
//
//	config, err := postgres.PoolConfig("postgres://healthlab@db.example.com/healthlab")
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	engine, err := postgres.Open(ctx, pool, stores.Tables(), nil)
//	all := stores.New(engine, &stores.Options{Keys: keys, Events: stores.Outbox})
//	s, err := service.New(ctx, service.Config{Stores: all, …})
//
// # Schema
//
// Each declared table is one table of the schema healthlab, with columns for the key, the user, the due
// time, two index values, the revision and the document. [Open] makes missing tables. Where the role
// of the service must not make tables, the owner of the database calls [Migrate], and the service calls
// [New]. Many processes may call any of them at once. A program refuses a database that a newer
// program has prepared.
//
// [Distribute] spreads the tables per user (store.Definition.PerUser) over the machines of a Citus cluster;
// docs/scaling.md describes the distribution and the cost of requests.
//
// # Transactions of the host
//
// [Store.WithTx] makes calls of the store part of a transaction that the host began, so that its rows
// and those of the store commit together:
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		if _, err := tx.Exec(ctx, "insert into booking (id) values ($1)", id); err != nil {
//			return err
//		}
//		_, err := health.CreateUser(engine.WithTx(ctx, tx), team, user)
//		return err
//	})
//
// # Roles and row-level security
//
// Every table has a policy that shows a session the rows of the team in the setting healthlab.team, and
// rows without a team. Policies bind a role that does not own the tables. Run the service as such a
// role and set Options.RowSecurity; the store then names the team of each query:
//
//	create role service login;
//	grant usage on schema healthlab to service;
//	grant select, insert, update, delete on all tables in schema healthlab to service;
//
// A statement that forgets its team finds no row of a team. Work over all teams (what is due, the
// deletion of a user) reaches all rows.
//
// The keys of persons (personkey.Tables) belong in another database or at least another schema, so that
// a backup of the data alone cannot be read: open a second Store with Options.Schema.
package postgres

// Files in the order of reading: each uses those before it.
//
//	store_errors.go pool_other.go options.go pool_config.go pool_linux.go store_schema.go store_query.go
//	store_write.go store_tx.go store.go signal.go distribute.go open.go

package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personexport"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// RowSchema is the schema of RowTables.
const RowSchema = "rows"

// RowTables returns the tables that every database of a test has for the store of rows.
func RowTables() []store.Definition {
	var out []store.Definition
	for _, d := range slices.Concat(
		healthdata.UserTables(), storetest.Tables(), healthdata.DataTables(false), eventlog.Tables(), personkey.Tables(), accesslog.Tables(),
		organisation.Tables(), teamsettings.Tables(), linking.Tables(), bulk.Tables(), webhook.Tables(), receiver.Tables(),
		aggregate.Tables(), continuous.Tables(), labreport.Tables(), personexport.Tables(),
		orders.Tables(), idempotency.Tables(), matchtest.Tables(), catalogue.Tables(), appointment.Tables(), people.Tables(), labjournal.Tables(),
	) {
		if !slices.ContainsFunc(out, func(o store.Definition) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	return out
}

// migrateRows makes the tables, which [RestrictedRole] may read and write.
func migrateRows(ctx context.Context, conn *pgx.Conn) error {
	if err := Migrate(ctx, conn, RowTables(), &Options{Schema: RowSchema}); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `
		grant usage on schema `+RowSchema+` to `+RestrictedRole+`;
		grant select, insert, update, delete on all tables in schema `+RowSchema+` to `+RestrictedRole)
	return err
}

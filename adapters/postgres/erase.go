package postgres

import (
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/orderstore"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// eraseUser deletes what is kept of a user: what is a lock first, as the series are of
// their chunks and segments, the tasks of their tables and the transactions of their
// orders. Every table with a user_id is here or in package outbox, but user_name, where a
// deleted user has no row.
var eraseUser = append(slices.Clone(orderstore.EraseUser),
	deleteJobsOfUser, emptyJobsOfUser, deleteExportsOfUser, emptyExportsOfUser,
	`delete from healthlab.series where user_id = $1`,
	`delete from healthlab.segment where user_id = $1`,
	`delete from healthlab.chunk where user_id = $1`,
	`delete from healthlab.record where user_id = $1`,
	`delete from healthlab.continuous_task where user_id = $1`,
	`delete from healthlab.continuous_result where user_id = $1`,
	`delete from healthlab.continuous_history where user_id = $1`,
	`delete from healthlab.connection where user_id = $1`,
	`delete from healthlab.link_code where user_id = $1`,
	`delete from healthlab.link_session where user_id = $1`,
	`delete from healthlab.link_credential where user_id = $1`,
	`delete from healthlab.app_session where user_id = $1`,
	`delete from healthlab.bulk_item where user_id = $1`,
	`delete from healthlab.pull_task where user_id = $1`,
	`delete from healthlab.pull_budget where user_id = $1`,
	`delete from healthlab.pull_refused where user_id = $1`,
)

// followUser adds to a batch what orders, parsing jobs and series change when a user is deleted
// or restored.
func followUser(b *pgx.Batch, old, next *healthdata.User) {
	if old.Live() != next.Live() {
		orderstore.HideOrders(b, old, old.Live())
	}
	if old.Live() && !next.Live() {
		recallAll.queue(b, []uuid.UUID{old.ID.UUID}, nil)
		orderstore.DropAnswers(b, old.ID)
		b.Queue(lockJobsOfUser, old.Team.UUID, old.ID.UUID)
	}
}

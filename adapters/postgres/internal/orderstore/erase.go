package orderstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// What erases the orders of a user, in the team that the user is of.
const (
	// In the order in which all writers lock: transactions before their orders.
	lockOrdersOfUser = `
select from healthlab.order_transaction t
where (t.team_id, t.transaction_id) in (
	select o.team_id, o.transaction_id from healthlab.orders o join healthlab.users u on u.team_id = o.team_id and u.user_id = o.user_id
	where o.user_id = $1)
order by t.team_id, t.transaction_id for update`

	// The answer of a request that placed an order shows the order.
	isKeyOfUser = `(k.user_id = $1 or (k.team_id, k.order_id) in (
	select o.team_id, o.order_id from healthlab.orders o join healthlab.users u on u.team_id = o.team_id and u.user_id = o.user_id
	where o.user_id = $1))`
	deleteKeysOfUser  = `delete from healthlab.order_key k where ` + isKeyOfUser
	dropAnswersOfUser = `update healthlab.order_key k set answer = null where k.answer is not null and ` + isKeyOfUser

	// hideOrdersOfUser takes the orders of a user out of lists, or puts them back. It waits
	// for changes of the orders that are under way.
	hideOrdersOfUser = `
with hidden as (
	update healthlab.orders set hidden = $3 where team_id = $1 and user_id = $2 and hidden <> $3 returning *
), removed as (
	delete from healthlab.order_search s where $3 and s.team_id = $1 and s.order_id in (select order_id from hidden))
insert into healthlab.order_search (team_id, order_id, transaction_id, user_id, method, last_status, created_at, updated_at,
	event_at, activate_by, interpretation, tokens, sort_name)
select team_id, order_id, transaction_id, user_id, method, last_status, created_at, updated_at,
	event_at, activate_by, interpretation, tokens, sort_name
from hidden where not $3`

	// A transaction that others have orders in stays theirs.
	deleteTransactionsOfUser = `
delete from healthlab.order_transaction t using healthlab.orders o, healthlab.users u
where o.user_id = $1 and u.user_id = $1 and o.team_id = u.team_id and t.team_id = o.team_id and t.transaction_id = o.transaction_id
	and not exists (select from healthlab.orders other
		where other.team_id = t.team_id and other.transaction_id = t.transaction_id and other.user_id <> $1)`

	deleteInfoOfUser = `
delete from healthlab.user_info i using healthlab.users u
where i.user_id = $1 and u.user_id = $1 and i.team_id = u.team_id`

	deleteInsuranceOfUser = `
delete from healthlab.insurance i using healthlab.users u
where i.user_id = $1 and u.user_id = $1 and i.team_id = u.team_id`

	deleteResultsOfUser = `
delete from healthlab.raw_result r using healthlab.users u
where r.user_id = $1 and u.user_id = $1 and r.team_id = u.team_id`

	deleteSearchOfUser = `
delete from healthlab.order_search s using healthlab.orders o, healthlab.users u
where o.user_id = $1 and u.user_id = $1 and o.team_id = u.team_id and s.team_id = o.team_id and s.order_id = o.order_id`

	deleteOrdersOfUser = `
delete from healthlab.orders o using healthlab.users u
where o.user_id = $1 and u.user_id = $1 and o.team_id = u.team_id`
)

// EraseUser are the statements that delete the orders of the user $1, and what belongs to them.
// The first of them locks.
var EraseUser = []string{
	lockOrdersOfUser, deleteKeysOfUser, deleteHoldsOfUser, deleteTransactionsOfUser, deleteSearchOfUser, deleteOrdersOfUser,
	deleteInfoOfUser, deleteInsuranceOfUser, deleteResultsOfUser,
	deleteLabRecordsOfUser, deleteLabDeliveriesOfUser, deleteLabMessagesOfUser,
}

// HideOrders adds to a batch what takes the orders of a user out of lists, or puts them back.
func HideOrders(b *pgx.Batch, u *healthdata.User, hidden bool) {
	b.Queue(hideOrdersOfUser, u.Team.UUID, u.ID.UUID, hidden)
}

// DropAnswers adds to a batch what deletes the kept answers of requests that show orders of a
// user.
func DropAnswers(b *pgx.Batch, user healthlab.UserID) { b.Queue(dropAnswersOfUser, user.UUID) }

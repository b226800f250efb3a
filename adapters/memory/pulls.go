package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pullTable keeps tasks, budgets and quarantine of all teams.
type pullTable struct {
	tasks map[healthdata.UserRef]map[pull.Key]*pull.Task
	due   work.Due[pull.Key] // when each task may be claimed

	budgets map[pull.BudgetKey]pull.Budget
	refused map[refusedKey]pull.RefusedItem
	notices map[noticeKey]time.Time // when they came
}

type noticeKey struct {
	provider string
	id       [32]byte
}

type refusedKey struct {
	team healthlab.TeamID
	user healthlab.UserID
	id   uuid.UUID
}

func newPullTable() *pullTable {
	return &pullTable{
		tasks: map[healthdata.UserRef]map[pull.Key]*pull.Task{}, budgets: map[pull.BudgetKey]pull.Budget{}, refused: map[refusedKey]pull.RefusedItem{},
		notices: map[noticeKey]time.Time{},
	}
}

type pullStore struct {
	*database
	users  *userTable
	outbox *outbox
	pulls  *pullTable
}

func (v pullStore) ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]pull.Ref, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	found := v.users.dueConnections.Until(now)
	connection := func(ref pull.Ref) *healthdata.Connection {
		return v.users.byID[ref.User].user.Connection(ref.Provider)
	}
	slices.SortFunc(found, func(a, b pull.Ref) int {
		return cmp.Or(connection(a).Due.Compare(connection(b).Due), compareRefs(a, b))
	})
	var out []pull.Ref
	for _, ref := range found[:min(max(n, 0), len(found))] {
		connection(ref).Due = instant(until)
		v.users.dueConnections.Set(ref, instant(until))
		out = append(out, ref)
	}
	return out, nil
}

// task returns the task of a key, or nil.
func (t *pullTable) task(k pull.Key) *pull.Task {
	return t.tasks[healthdata.UserRef{Team: k.Team, User: k.User}][k]
}

// put keeps a task, in place of the one with its key.
func (t *pullTable) put(task pull.Task) {
	owner := healthdata.UserRef{Team: task.Team, User: task.User}
	if t.tasks[owner] == nil {
		t.tasks[owner] = map[pull.Key]*pull.Task{}
	}
	t.tasks[owner][task.Key] = &task
	t.due.Set(task.Key, task.Due)
}

// all goes through all tasks, in no order.
func (t *pullTable) all() iter.Seq[*pull.Task] {
	return func(yield func(*pull.Task) bool) {
		for _, tasks := range t.tasks {
			for _, task := range tasks {
				if !yield(task) {
					return
				}
			}
		}
	}
}

// drop removes a task.
func (t *pullTable) drop(k pull.Key) {
	owner := healthdata.UserRef{Team: k.Team, User: k.User}
	if delete(t.tasks[owner], k); len(t.tasks[owner]) == 0 {
		delete(t.tasks, owner)
	}
	t.due.Set(k, time.Time{})
}

func compareRefs(a, b pull.Ref) int {
	return cmp.Or(slices.Compare(a.User.UUID[:], b.User.UUID[:]), cmp.Compare(a.Provider, b.Provider))
}

func compareTasks(a, b pull.Task) int {
	return cmp.Or(compareRefs(a.Ref, b.Ref), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind))
}

// tasksOf returns the tasks of a user that fit, in the order of their keys.
func (v pullStore) tasksOf(team healthlab.TeamID, user healthlab.UserID, fits func(pull.Key) bool) []pull.Task {
	var out []pull.Task
	for k, t := range v.pulls.tasks[healthdata.UserRef{Team: team, User: user}] {
		if fits(k) {
			out = append(out, cloneTask(*t))
		}
	}
	slices.SortFunc(out, compareTasks)
	return out
}

func (v pullStore) Plan(ctx context.Context, ref pull.Ref, change func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error)) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	row := v.users.find(ref.Team, ref.User)
	if row == nil || !row.user.Live() || row.user.Connection(ref.Provider) == nil {
		return fmt.Errorf("%w: no such connection", healthlab.NotFound)
	}
	u, err := v.users.open(ctx, row)
	if err != nil {
		return err
	}
	old := v.tasksOf(ref.Team, ref.User, func(k pull.Key) bool { return k.Ref == ref })
	planned, err := change(*u.Connection(ref.Provider), u, old)
	if err != nil {
		return err
	}
	next := map[pull.Key]pull.Task{}
	for _, t := range planned.Tasks {
		t, err := normalTask(t)
		if err != nil {
			return err
		}
		if _, twice := next[t.Key]; twice || t.Ref != ref {
			return fmt.Errorf("%w: a plan has tasks of its connection, each once", healthlab.Invalid)
		}
		next[t.Key] = t
	}
	if err := v.outbox.emit(ctx, planned.Events); err != nil {
		return err
	}
	for _, t := range old {
		v.pulls.drop(t.Key)
	}
	for _, t := range next {
		v.pulls.put(t)
	}
	row.user.Connection(ref.Provider).Due = instant(planned.Due)
	v.users.dueConnections.Set(ref, instant(planned.Due))
	return nil
}

func (v pullStore) Claim(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	var due []*pull.Task
	for _, k := range v.pulls.due.Until(q.Now) {
		if t := v.pulls.task(k); !t.Lease.After(at) && !slices.Contains(q.Without, t.App()) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *pull.Task) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), a.Due.Compare(b.Due), compareTasks(*a, *b))
	})
	var out []pull.Task
	for _, t := range due[:min(max(q.N, 0), len(due))] {
		t.Lease = at.Add(q.Lease)
		t.Fence++
		out = append(out, cloneTask(*t))
	}
	return out, nil
}

func (v pullStore) Update(ctx context.Context, key pull.Key, change func(*pull.Task) ([]healthlab.Event, error)) (pull.Task, error) {
	if err := v.lock(ctx); err != nil {
		return pull.Task{}, err
	}
	defer v.mu.Unlock()
	old := v.pulls.task(key)
	if old == nil || !v.users.isLive(key.Team, key.User) {
		return pull.Task{}, fmt.Errorf("%w: no such task", healthlab.NotFound)
	}
	next := cloneTask(*old)
	events, err := change(&next)
	if err != nil {
		return pull.Task{}, err
	}
	next.Key = key
	if next, err = normalTask(next); err != nil {
		return pull.Task{}, err
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return pull.Task{}, err
	}
	v.pulls.put(next)
	return cloneTask(next), nil
}

func (v pullStore) Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]pull.Task, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	if !v.users.isLive(team, user) {
		return nil, nil
	}
	return v.tasksOf(team, user, func(pull.Key) bool { return true }), nil
}

func (v pullStore) Notify(ctx context.Context, n pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
	if err := healthlab.CheckText(append([]string{n.Provider, n.ExternalUserID, n.Client}, n.Resources...)...); err != nil {
		return 0, err
	}
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	known := v.pulls.notices
	key := noticeKey{n.Provider, n.ID}
	if _, ok := known[key]; ok {
		return 0, nil
	}
	var next []pull.Task
	for t := range v.pulls.all() {
		k := t.Key
		if k.Provider != n.Provider || k.Kind != pull.News || t.Due.IsZero() || !v.users.isLive(k.Team, k.User) ||
			len(n.Resources) > 0 && !slices.Contains(n.Resources, k.Resource) {
			continue
		}
		c := v.users.find(k.Team, k.User).user.Connection(k.Provider)
		if c == nil || c.Status != healthdata.Connected || c.ExternalUserID == nil || *c.ExternalUserID != n.ExternalUserID ||
			!n.Team.IsZero() && (k.Team != n.Team || c.Client != n.Client) {
			continue
		}
		edited := cloneTask(*t)
		change(&edited)
		edited.Key = k
		edited, err := normalTask(edited)
		if err != nil {
			return 0, err
		}
		next = append(next, edited)
	}
	for _, t := range next {
		v.pulls.put(t)
	}
	maps.DeleteFunc(known, func(_ noticeKey, at time.Time) bool { return at.Before(forget) })
	known[key] = n.At
	return len(next), nil
}

func (v pullStore) UserStatuses(ctx context.Context, q pull.UserStatusQuery) ([]pull.UserStatus, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []pull.UserStatus
	for _, row := range v.users.byID {
		u := &row.user
		if u.Team != q.Team || !u.Live() || !q.User.IsZero() && u.ID != q.User || slices.Compare(u.ID.UUID[:], q.After.UUID[:]) <= 0 {
			continue
		}
		p := pull.UserStatus{User: u.ID}
		for _, c := range u.Connections {
			if c.Status != healthdata.Deregistered && (q.Provider == "" || c.Provider == q.Provider) {
				p.Providers = append(p.Providers, c.Provider)
			}
		}
		slices.Sort(p.Providers)
		if len(p.Providers) > 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b pull.UserStatus) int { return slices.Compare(a.User.UUID[:], b.User.UUID[:]) })
	out = out[:min(max(q.N, 0), len(out))]
	for i := range out {
		p := &out[i]
		p.Tasks = v.tasksOf(q.Team, p.User, func(k pull.Key) bool { return slices.Contains(p.Providers, k.Provider) })
		p.Refused = v.refusedOf(q.Team, p.User, func(r pull.RefusedItem) bool { return slices.Contains(p.Providers, r.Provider) })
		p.Refused = p.Refused[:min(pull.MaxRefusedPerStatus, len(p.Refused))]
	}
	return out, nil
}

func (v pullStore) UpdateBudgets(ctx context.Context, keys []pull.BudgetKey, change func([]pull.Budget) error) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	list := make([]pull.Budget, len(keys))
	for i, k := range keys {
		if err := healthlab.CheckText(k.Provider, k.Name); err != nil {
			return err
		}
		if slices.Contains(keys[:i], k) {
			return fmt.Errorf("%w: a budget is named once", healthlab.Invalid)
		}
		if !k.User.IsZero() && !v.users.isLive(k.Team, k.User) {
			return noUser()
		}
		list[i] = cloneBudget(v.pulls.budgets[k])
	}
	if err := change(list); err != nil {
		return err
	}
	for i, k := range keys {
		v.pulls.budgets[k] = cloneBudget(list[i])
	}
	return nil
}

func (v pullStore) Quarantine(ctx context.Context, ref pull.Ref, refused []pull.RefusedItem) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if !v.users.isLive(ref.Team, ref.User) {
		return noUser()
	}
	for _, r := range refused {
		if err := checkRefused(&r); err != nil {
			return err
		}
	}
	for _, r := range refused {
		k := refusedKey{ref.Team, ref.User, r.ID}
		if old, ok := v.pulls.refused[k]; ok {
			old.At, old.Count = healthlab.At(r.At.Time), old.Count+r.Count
			v.pulls.refused[k] = old
			continue
		}
		r.Provider, r.At, r.Reasons = ref.Provider, healthlab.At(r.At.Time), slices.Clone(r.Reasons)
		v.pulls.refused[k] = r
	}
	all := v.refusedOf(ref.Team, ref.User, func(pull.RefusedItem) bool { return true })
	for _, r := range all[min(pull.MaxRefusedPerUser, len(all)):] {
		delete(v.pulls.refused, refusedKey{ref.Team, ref.User, r.ID})
	}
	return nil
}

func (v pullStore) Quarantined(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, n int) ([]pull.RefusedItem, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	if !v.users.isLive(team, user) {
		return nil, nil
	}
	out := v.refusedOf(team, user, func(pull.RefusedItem) bool { return true })
	return out[:min(max(n, 0), len(out))], nil
}

// refusedOf returns the refusals of a user that fit, in their order.
func (v pullStore) refusedOf(team healthlab.TeamID, user healthlab.UserID, fits func(pull.RefusedItem) bool) (out []pull.RefusedItem) {
	for k, r := range v.pulls.refused {
		if k.team == team && k.user == user && fits(r) {
			r.Reasons = slices.Clone(r.Reasons)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b pull.RefusedItem) int {
		return cmp.Or(b.At.Compare(a.At.Time), slices.Compare(a.ID[:], b.ID[:]))
	})
	return out
}

func checkRefused(r *pull.RefusedItem) error {
	text := []string{r.Provider, r.Resource}
	for _, why := range r.Reasons {
		text = append(text, why.Field, why.Code, why.Message)
	}
	return healthlab.CheckText(text...)
}

func cloneTask(t pull.Task) pull.Task {
	t.Days = slices.Clone(t.Days)
	if len(t.Days) == 0 {
		t.Days = nil
	}
	return t
}

// normalTask returns a task in the form in which it is kept.
func normalTask(t pull.Task) (pull.Task, error) {
	t = cloneTask(t)
	for _, at := range []*time.Time{
		&t.Linked, &t.From, &t.To, &t.Until, &t.Due, &t.Lease, &t.Seen, &t.Swept, &t.Floor, &t.Announced, &t.Reach,
		&t.ScheduledAt, &t.StartedAt, &t.EndedAt, &t.LastTry, &t.Oldest, &t.Newest,
	} {
		*at = instant(*at)
	}
	return t, healthlab.CheckText(t.Client, t.Provider, t.Resource, string(t.Kind), string(t.Status), t.Cursor, string(t.Error))
}

func cloneBudget(b pull.Budget) pull.Budget {
	b.Next, b.Blocked, b.PaceEnd = instant(b.Next), instant(b.Blocked), instant(b.PaceEnd)
	b.Recent = slices.Clone(b.Recent)
	for i := range b.Recent {
		b.Recent[i] = instant(b.Recent[i])
	}
	if len(b.Recent) == 0 {
		b.Recent = nil
	}
	return b
}

// erase removes what is kept about a user.
func (t *pullTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for k := range t.tasks[healthdata.UserRef{Team: team, User: user}] {
		t.drop(k)
	}
	for k := range t.budgets {
		if k.Team == team && k.User == user {
			delete(t.budgets, k)
		}
	}
	for k := range t.refused {
		if k.team == team && k.user == user {
			delete(t.refused, k)
		}
	}
}

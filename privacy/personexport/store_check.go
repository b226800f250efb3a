package personexport

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

func checkJob(j *Job) error {
	if j.Team.IsZero() || j.ID == (JobID{}) || j.User.IsZero() {
		return fmt.Errorf("%w: export: the id, the team and the user must be set", healthlab.Invalid)
	}
	return nil
}

// normalized returns a deep copy of a job as a [Store] must store it: with times in UTC to the microsecond. It returns
// [healthlab.Invalid] if [healthlab.CheckText] refuses the status or the name of a file.
func (j *Job) normalized() (Job, error) {
	out := j.Clone()
	out.CreatedAt, out.UpdatedAt = healthlab.At(j.CreatedAt).Time, healthlab.At(j.UpdatedAt).Time
	out.CompletedAt, out.ExpiresAt = healthlab.At(j.CompletedAt).Time, healthlab.At(j.ExpiresAt).Time
	out.DueAt, out.StoreTime = healthlab.At(j.DueAt).Time, time.Time{}
	texts := []string{string(j.Status)}
	for i := range j.Files {
		texts = append(texts, j.Files[i].Name)
	}
	return out, healthlab.CheckText(texts...)
}

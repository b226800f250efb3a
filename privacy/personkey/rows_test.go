package personkey_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// A box opens in its own row and column alone, so no two of them have one name, whatever their ids.
func TestRowNames_areUniquePerRowAndColumn(t *testing.T) {
	seen := map[string]bool{}
	id := uuid.New()
	steps := personkey.RowSeries("steps", "ring", "watch", "")
	for _, row := range []string{
		personkey.RowBirthDate, personkey.RowUserInfo, personkey.RowRecordDoc("sleep", id), personkey.RowRecordRaw("sleep", id),
		personkey.RowEvent(id), personkey.RowResultTable(id), personkey.RowOrder(id), personkey.RowSortName(id),
		personkey.RowAnswer(id.String()), personkey.RowResult(id), personkey.RowMatchTestRun(id), personkey.RowInsurance(id),
		personkey.RowParsingJob(id), personkey.RowLabRecord("lab", "1"), personkey.RowLabDelivery("lab", "1"),
		personkey.RowLabMessage("lab", 1), personkey.RowFile(id.String()),
		personkey.RowTail(steps), personkey.RowChunkHeader(steps, 1), personkey.RowChunkData(steps, 1), personkey.RowChunkData(steps, -1),
		personkey.RowTail(personkey.RowSeries("steps", "ring", "app", "")), personkey.RowTail(personkey.RowSeries("steps", "ringapp", "", "")),
		personkey.RowTail(personkey.RowSeries("steps", "ring", "app", "1/data")),
	} {
		require.False(t, seen[row], row)
		seen[row] = true
	}
	require.NotEqual(t, personkey.RowOrder(id), personkey.RowOrder(uuid.New()))
}

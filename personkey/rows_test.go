package personkey_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/personkey"
)

// A box opens in its own row and column alone, so no two of them have one name, whatever their ids.
func TestRowsDiffer(t *testing.T) {
	seen := map[string]bool{}
	id := uuid.New()
	for _, row := range []string{
		personkey.RowBirthDate, personkey.RowUserInfo, personkey.RowRecordDoc("sleep", id), personkey.RowRecordRaw("sleep", id),
		personkey.RowEvent(id), personkey.RowResultTable(id), personkey.RowOrder(id), personkey.RowSortName(id),
		personkey.RowAnswer(id.String()), personkey.RowResult(id), personkey.RowMatchTestRun(id), personkey.RowInsurance(id),
		personkey.RowParsingJob(id), personkey.RowLabRecord("lab", "1"), personkey.RowLabDelivery("lab", "1"),
		personkey.RowLabMessage("lab", 1), personkey.RowFile(id.String()),
	} {
		require.False(t, seen[row], row)
		seen[row] = true
	}
	require.NotEqual(t, personkey.RowOrder(id), personkey.RowOrder(uuid.New()))
}

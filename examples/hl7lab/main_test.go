package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program prints the exchange as the service and the laboratory see it.
func TestRun_printsTheExchangeOfBothSides(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, strings.TrimPrefix(`
clinic: placed an order: received.walk_in_test.ordered
lab:    got OML^O21 for Ana Roe: Ferritin Iron
clinic: 0 news; the order is received.walk_in_test.requisition_created
lab:    sent a partial report; the answer is AA
clinic: 1 news; the order is sample_with_lab.walk_in_test.partial_results
        Ferritin 9.0 ug/L (abnormal, LOINC 2276-4)
lab:    sent the final report; the answer is AA
clinic: 1 news; the order is completed.walk_in_test.completed
        Ferritin 9.5 ug/L (abnormal, LOINC 2276-4)
        Iron 90 ug/dL (normal, LOINC 2498-4)
lab:    sent the same again; the answer is AA
clinic: 0 news; the order is completed.walk_in_test.completed
lab:    sent the partial report again, late; the answer is AA
clinic: 0 news; the order is completed.walk_in_test.completed
lab:    sent a report with a wrong number; the answer is AA
clinic: 1 news; the order is completed.walk_in_test.completed
        Ferritin 9.5 ug/L (abnormal, LOINC 2276-4)
        Iron 90 ug/dL (normal, LOINC 2498-4)
lab:    sent a corrected report; the answer is AA
clinic: 1 news; the order is completed.walk_in_test.corrected
        Ferritin 95.0 ug/L (normal, LOINC 2276-4)
        Iron 90 ug/dL (normal, LOINC 2498-4)
for a person to look at: a reported number is not the order's
`, "\n"), out.String())
}

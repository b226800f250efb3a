package main

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `the order is sample_with_lab.walk_in_test.partial_results
the order is completed.walk_in_test.completed
Ferritin 18 ug/L: normal
Iron 52 ug/dL: abnormal
`, out.String())
}

func TestBackend(t *testing.T) {
	orderstest.RunLabBackend(t, func(t testing.TB) orderstest.LabHarness {
		lab := newDouble()
		api := httptest.NewServer(lab)
		t.Cleanup(api.Close)
		return orderstest.LabHarness{Lab: NewBackend(api.URL), Method: catalogue.WalkInTest, Pass: lab.Work}
	})
}

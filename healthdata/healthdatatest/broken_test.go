package healthdatatest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen brokenView=healthdata.View overriddenData=healthdata.Data overriddenLog=webhook.Log overriddenUsers=healthdata.Users

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("users", brokenUserStores),
		conformance.Of("data", brokenDataStores),
		conformance.Of("users alone", brokenUsersAlone),
		conformance.Of("data alone", brokenDataAlone),
	)
}

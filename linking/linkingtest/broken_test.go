package linkingtest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen brokenClients=linking.TeamClients overriddenApps=linking.AppSessions overriddenLinking=linking.Store

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("store", brokenStores),
		conformance.Of("credentials", brokenCredentialStores),
		conformance.Of("apps", brokenAppStores),
		conformance.Of("clients", brokenClientStores),
	)
}

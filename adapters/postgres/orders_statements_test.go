package postgres

import (
	"fmt"
	"maps"
)

func init() {
	maps.Copy(statements, map[string]string{
		"selectOrder": selectOrder, "selectSample": selectSample, "lockOrder": lockOrder, "drawForNew": drawForNew,
		"drawForOrder": drawForOrder, "hasOrder": hasOrder, "claimOrders": claimOrders, "claimNotifications": claimNotifications, "claimFeed": claimFeed, "moveFeed": moveFeed,
		"insertOrder": insertOrder, "updateOrder": updateOrder, "planLists": planLists, "countOrders": countOrders, "selectNamesOfOrders": selectNamesOfOrders, "selectOrders": selectOrders, "countOrdersByStatus": countOrdersByStatus,
		"putInfo": putInfo, "selectInfo": selectInfo, "lockInfo": lockInfo, "hasCoverage": hasCoverage, "endCoverage": endCoverage,
		"insertCoverage": insertCoverage, "coverageColumns": coverageColumns, "selectCoverage": selectCoverage,
		"selectCoverageAt": selectCoverageAt, "insertPayor": insertPayor, "selectPayors": selectPayors,
		"deleteInfoOfUser": deleteInfoOfUser, "deleteInsuranceOfUser": deleteInsuranceOfUser,
		"deleteResultsOfUser": deleteResultsOfUser, "insertResult": insertResult, "shareUserOfResult": shareUserOfResult, "updateResult": updateResult, "selectResult": selectResult,
		"lockResult": lockResult, "countResults": countResults, "selectResults": selectResults, "startMatchTestRun": startMatchTestRun,
		"trialColumns": trialColumns, "selectMatchTestRunByKey": selectMatchTestRunByKey, "selectMatchTestRun": selectMatchTestRun, "lockMatchTestRun": lockMatchTestRun,
		"updateMatchTestRun": updateMatchTestRun, "claimResultMatchTestRuns": claimResultMatchTestRuns,
		"insertKey": insertKey, "lockKey": lockKey, "startKey": startKey, "finishKey": finishKey, "pruneKeys": pruneKeys,
		"insertLabTest": insertLabTest, "updateLabTest": updateLabTest, "selectLabTests": selectLabTests, "listLabTests": listLabTests,
		"lockLabTest": lockLabTest, "listLabTestsOfKind": listLabTestsOfKind, "findLabTests": findLabTests,
		"shareUserOfOrder": shareUserOfOrder, "lockOrdersOfUser": lockOrdersOfUser, "deleteKeysOfUser": deleteKeysOfUser,
		"deleteTransactionsOfUser": deleteTransactionsOfUser, "deleteSearchOfUser": deleteSearchOfUser, "deleteOrdersOfUser": deleteOrdersOfUser,
		"releaseHolds": releaseHolds, "takeHolds": takeHolds, "selectHeld": selectHeld, "deleteHoldsOfUser": deleteHoldsOfUser,
		"claimVisits": claimVisits, "keepSlots": keepSlots, "selectSlots": selectSlots, "centersNear": centersNear,
		"centersAt": centersAt, "nextCenters": nextCenters, "deleteCenters": deleteCenters, "keepCenter": keepCenter,
	})
	for by, sql := range orderPages {
		statements[fmt.Sprintf("page by %+v", by)] = sql
	}
}

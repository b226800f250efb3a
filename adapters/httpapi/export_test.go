package httpapi

import (
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/compat"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/laborders"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi/extras"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// HealthBodies are the schemas of health data, whose Go types are unexported.
func HealthBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "UploadDevice", Value: deviceIn{}, Input: true},
		{Schema: "Device", Value: healthdata.Device{}},
		{Schema: "UploadSource", Value: sourceIn{}, Input: true},
		{Schema: "SampleRemoval", Value: sampleRemovalIn{}, Input: true},
		{Schema: "SummaryRemoval", Value: summaryRemovalIn{}, Input: true},
		{Schema: "Removed", Value: removedOut{}},
		{Schema: "SampleUpload", Value: samplesIn{}, Input: true},
		{Schema: "StreamUpload", Value: streamIn{}, Input: true},
		{Schema: "WorkoutStreamUpload", Value: healthdata.WorkoutStream{}, Input: true},
		{Schema: "ActivityUpload", Value: summariesIn[healthdata.Activity]{}, Input: true},
		{Schema: "SleepUpload", Value: summariesIn[healthdata.Sleep]{}, Input: true},
		{Schema: "SleepCycleUpload", Value: summariesIn[healthdata.SleepCycle]{}, Input: true},
		{Schema: "BodyUpload", Value: summariesIn[healthdata.Body]{}, Input: true},
		{Schema: "WorkoutUpload", Value: summariesIn[healthdata.Workout]{}, Input: true},
		{Schema: "ProfileUpload", Value: summariesIn[healthdata.Profile]{}, Input: true},
		{Schema: "MealUpload", Value: summariesIn[healthdata.Meal]{}, Input: true},
		{Schema: "MenstrualCycleUpload", Value: summariesIn[healthdata.MenstrualCycle]{}, Input: true},
		{Schema: "ElectrocardiogramUpload", Value: summariesIn[healthdata.Electrocardiogram]{}, Input: true},
		{Schema: "RawItem", Value: rawItem{}},
	}
}

// LinkBodies are the schemas of linking, whose Go types are unexported.
func LinkBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "NewLinkToken", Value: linkTokenIn{}, Input: true},
		{Schema: "LinkStart", Value: startLinkIn{}, Input: true},
		{Schema: "LinkTokenCheck", Value: checkTokenIn{}, Input: true},
		{Schema: "PasswordLink", Value: passwordIn{}, Input: true},
		{Schema: "MFACode", Value: mfaIn{}, Input: true},
		{Schema: "EmailLink", Value: emailIn{}, Input: true},
		{Schema: "LinkAuth", Value: linkAuthIn{}, Input: true},
		{Schema: "DemoConnect", Value: demoIn{}, Input: true},
		{Schema: "LinkTokenValidity", Value: checkTokenOut{}},
		{Schema: "LinkState", Value: linkStateOut{}},
		{Schema: "LinkConfig", Value: linkConfigOut{}},
		{Schema: "LinkableProvider", Value: linkableSource{}},
		{Schema: "OAuthProvider", Value: oauthSource{}},
		{Schema: "LinkResult", Value: linkResult{}},
		{Schema: "EmailLinkResult", Value: emailResult{}},
		{Schema: "DemoConnected", Value: demoOut{}},
		{Schema: "UserProviders", Value: userProvidersOut{}},
	}
}

// AppBodies are the schemas of apps, whose Go types are unexported.
func AppBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "SignIn", Value: signInIn{}, Input: true},
		{Schema: "LinkCodeExchange", Value: linkCodeIn{}, Input: true},
		{Schema: "AppRefresh", Value: refreshIn{}, Input: true},
	}
}

// OwnOperations are the operations that a user's own app may call.
func OwnOperations(c Config) (ids []string) {
	a := newAPI(c)
	for _, op := range a.operations() {
		if isOwn(&op) {
			ids = append(ids, op.ID)
		}
	}
	return ids
}

// PriorityBodies are the schemas of preferences, whose Go types are unexported.
func PriorityBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "SourcePriority", Value: priorityOut{}},
		{Schema: "SourcePriorityEdit", Value: priorityIn{}, Input: true},
	}
}

// SettingsBodies are the schemas of teams' settings, whose Go types are unexported.
func SettingsBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "Team", Value: teamOut{}},
		{Schema: "TeamSettings", Value: settingsOut{}},
		{Schema: "TeamSettingsChange", Value: settingsIn{}, Input: true},
		{Schema: "PullPreferences", Value: pullPreferencesOut{}},
		{Schema: "PullPreferencesChange", Value: pullPreferencesIn{}, Input: true},
		{Schema: "ScopeRequirementList", Value: scopesOut{}},
		{Schema: "ProviderScopes", Value: scopeIn{}, Input: true},
	}
}

// PersonBodies are the schemas of persons, whose Go types are unexported.
func PersonBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "PayorByCode", Value: laborders.PayorByCode{}},
		{Schema: "PayorSearch", Value: laborders.PayorSearch{}, Input: true},
		{Schema: "DiagnosisCodes", Value: laborders.DiagnosisCodes{}, Input: true},
	}
}

// UnmatchedBodies are the schemas of results under review, whose Go types are unexported.
func UnmatchedBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "UnmatchedPage", Value: laborders.UnmatchedPage{}},
		{Schema: "TrialCases", Value: laborders.TestCases{}},
		{Schema: "TrialStarted", Value: laborders.TestRunStarted{}},
	}
}

// CriticalBodies are the schemas of critical results whose Go types are not exported.
func CriticalBodies() []contract.Pair {
	return []contract.Pair{{Schema: "CriticalResultPage", Value: laborders.CriticalPage{}}}
}

// ReportReviewBodies are the schemas of the reviews of lab reports whose Go types are not exported.
func ReportReviewBodies() []contract.Pair {
	reasons := []string{"invalid_input", "low_quality", "not_english", "too_many_pages", "processing_error"}
	return []contract.Pair{
		{Schema: "LabReportJobPage", Value: reportJobPage{}, Enums: map[string][]string{
			"data.status": {"upload_pending", "started", "pending_review", "completed", "failed"}, "data.failure_reason": reasons}},
		{Schema: "LabReportApproval", Value: reportApproval{}, Input: true, Enums: map[string][]string{
			"corrections.action": {"change", "drop", "add"}, "corrections.row.interpretation": {"normal", "abnormal", "critical", "unknown"},
			"corrections.row.sample_type": {"urine", "serum_plasma_blood", "capillary_blood", "stool", "saliva", "other", "unknown"}}},
		{Schema: "LabReportRejection", Value: reportRejection{}, Input: true, Enums: map[string][]string{"failure_reason": reasons}},
	}
}

// CompendiumBodies are the schemas of the compendium, whose Go types are unexported.
func CompendiumBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "OrderableTests", Value: laborders.OrderableTests{}},
		{Schema: "CommunicationChange", Value: laborders.CommunicationChange{}, Input: true},
	}
}

// BulkOps is a page of operations, and BulkImported says whose connection was made.
type (
	BulkOps      = bulkOpsOut
	BulkImported = bulkImportedOut
)

// BulkBodies are the schemas of bulk operations, whose Go types are unexported.
func BulkBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "BulkUsers", Value: bulkUsersIn{}, Input: true},
		{Schema: "BulkExportQuery", Value: bulkExportIn{}, Input: true},
		{Schema: "BulkImport", Value: bulkImportIn{}, Input: true},
		{Schema: "BulkImportRecipe", Value: recipeIn{}, Input: true},
		{Schema: "BulkImported", Value: bulkImportedOut{}},
		{Schema: "BulkTrigger", Value: bulkTriggerIn{}, Input: true},
		{Schema: "BulkOp", Value: bulkOpOut{}},
		{Schema: "BulkOpsPage", Value: bulkOpsOut{}},
	}
}

// PullBodies are the schemas of pulls, whose Go types are unexported.
func PullBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "FinishedHistory", Value: historyIn{}, Input: true},
		{Schema: "NothingToRefresh", Value: nothingToRefresh{}},
		{Schema: "UserResourcesPage", Value: statusPage[pull.UserResources]{}},
		{Schema: "UserHistoriesPage", Value: statusPage[pull.UserHistories]{}},
	}
}

// CredentialBodies are the schemas of teams' clients, whose Go types are unexported.
func CredentialBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "CustomCredentialList", Value: credentialsOut{}},
		{Schema: "CustomCredential", Value: credentialOut{}},
		{Schema: "CustomCredentialSetting", Value: credentialIn{}, Input: true},
		{Schema: "CustomCredentialDeleted", Value: credentialGoneOut{}},
		{Schema: "CustomCredentialPlan", Value: prepareIn{}, Input: true},
		{Schema: "CustomCredentialPreparation", Value: prepareOut{}},
		{Schema: "CustomCredentialStep", Value: prepareStepOut{}},
	}
}

// PipelineBodies are the schemas of FHIR servers, whose Go types are unexported.
func PipelineBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "NewEHRPipeline", Value: newPipelineIn{}, Input: true},
		{Schema: "EHRPipelinePatch", Value: pipelinePatchIn{}, Input: true},
		{Schema: "EHRPipeline", Value: pipelineOut{}},
		{Schema: "EHRKeySet", Value: keySetOut{}},
		{Schema: "EHRPipelineState", Value: pipelineStateOut{}},
		{Schema: "EHRPipelineList", Value: pipelinesOut{}},
		{Schema: "EHRPipelineDeleted", Value: pipelineDeletedOut{}},
		{Schema: "EHRDeadLetter", Value: ehr.DeadLetter{}},
		{Schema: "EHRDeadLetterPage", Value: deadLettersOut{}},
		{Schema: "EHRReplay", Value: replayIn{}, Input: true},
		{Schema: "EHRReplayed", Value: replayedOut{}},
	}
}

// OrganisationBodies are the schemas of organisations, whose Go types are unexported.
func OrganisationBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "OrganisationTeamList", Value: teamsOut{}},
		{Schema: "OrganisationTeam", Value: orgTeamOut{}},
		{Schema: "NewTeam", Value: newTeamIn{}, Input: true},
		{Schema: "TeamChange", Value: teamPatchIn{}, Input: true},
		{Schema: "APIKeyList", Value: apiKeysOut{}},
		{Schema: "APIKey", Value: apiKeyOut{}},
		{Schema: "NewAPIKey", Value: newAPIKeyIn{}, Input: true},
		{Schema: "APIKeyRotation", Value: rotateAPIKeyIn{}, Input: true},
		{Schema: "APIKeysDeleted", Value: apiKeysGoneOut{}},
	}
}

// AccessBodies are the schemas of the access log.
func AccessBodies() []contract.Pair {
	return []contract.Pair{{Schema: "AccessLog", Value: accessLogOut{}}, {Schema: "AccessLine", Value: accesslog.PublishedLine{}}}
}

// Reshape is what Compat makes of the answer of an operation.
func Reshape(c Compat, id, pattern, body string) string {
	return string(compat.Shapes(c).Reshape(&server.Operation{ID: id, Pattern: pattern}, []byte(body)))
}

// EventBodies are the schemas of the data of every type of event.
func EventBodies() []contract.Pair {
	var out []contract.Pair
	for _, e := range extras.EventTypes() {
		out = append(out, contract.Pair{Schema: extras.EventSchema(e), Value: e.Data})
	}
	return out
}

// Bounds are what the operations that take a Caller are for a bound one.
func Bounds(c Config) map[string]server.Bound {
	out := map[string]server.Bound{}
	for _, op := range newAPI(c).operations() {
		if op.Handle == nil {
			out[op.ID] = op.Bound
		}
	}
	return out
}

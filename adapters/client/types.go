package client

import "github.com/healthlab-dev/healthlab/adapters/client/internal/api"

//nolint:revive // the package comment is about all
type (
	NewUser        = api.NewUser
	User           = api.User
	NewLinkToken   = api.NewLinkToken
	LinkToken      = api.LinkToken
	UploadSource   = api.UploadSource
	SampleUpload   = api.SampleUpload
	SampleIn       = api.SampleIn
	ActivityUpload = api.ActivityUpload
	ActivityIn     = api.ActivityIn
	SleepUpload    = api.SleepUpload
	SleepIn        = api.SleepIn
	WorkoutUpload  = api.WorkoutUpload
	WorkoutIn      = api.WorkoutIn
	Counts         = api.Counts
	Group          = api.Group // samples of one source
	Sample         = api.Sample
	Activity       = api.Activity
	Sleep          = api.Sleep
	Workout        = api.Workout
	QueryRequest   = api.AggregateRequest
	Query          = api.AggregateQuery
	Timeframe      = api.AggregateTimeframe
	Period         = api.AggregatePeriod
	QueryAnswer    = api.AggregateAnswer
	NewWebhook     = api.NewWebhook
	Webhook        = api.Webhook
	LabTest        = api.LabTest
	NewOrder       = api.PlaceRequest
	OrderSet       = api.OrderSet
	PatientDetails = api.PatientDetailsInput
	PatientAddress = api.PatientAddressInput
	Order          = api.Order
	OrderResults   = api.OrderResults
)

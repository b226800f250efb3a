package personkey

import (
	"fmt"
	"strconv"
	"strings"
)

// The functions and constants of this file return what stores pass to [Keys.Seal] and [Keys.Open]
// as bound: the name of the row and column of an encrypted value, which therefore opens nowhere
// else. No two of them return the same text.
//
//	users.birth_date               the fallback birth date of a user
//	record/RESOURCE/ID/doc         the JSON of a summary, profile or workout stream
//	record/RESOURCE/ID/raw         the payload of its source
//	webhook_event/ID               the body of an event
//	continuous_result/ID           the stored table of a continuous query
//	order/ID                       an order
//	order_name/ID                  the name by which an order is sorted
//	order_key/KEY                  the answer of an idempotency key
//	raw_result/ID                  a result under review
//	result_trial/ID                a test run of matching
//	user_info                      the demographics of a user
//	insurance/ID                   an insurance record
//	parsing_job/ID                 a job that parses a lab report
//	lab_record/LAB/NUMBER          what a laboratory's backend knows of an order
//	lab_delivery/LAB/KEY           a message of a laboratory
//	lab_message/LAB/PLACE          an entry of a laboratory's feed
//	file/KEY                       a file, or the key that encrypts it
//	samples/SERIES/START/header    what sums up a chunk or a segment of a series
//	samples/SERIES/START/data      its samples
//	samples/SERIES/tail            a piece of the tail of a series

// RowBirthDate and RowUserInfo are for values that a user has once.
const (
	RowBirthDate = "users.birth_date"
	RowUserInfo  = "user_info"
)

// RowRecordDoc is for the JSON of a record.
func RowRecordDoc(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/doc"
}

// RowRecordRaw is for the payload of a record's source.
func RowRecordRaw(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/raw"
}

// RowEvent is for the body of an event.
func RowEvent(id fmt.Stringer) string { return "webhook_event/" + id.String() }

// RowResultTable is for the stored table of a continuous query.
func RowResultTable(query fmt.Stringer) string { return "continuous_result/" + query.String() }

// RowOrder is for an order.
func RowOrder(id fmt.Stringer) string { return "order/" + id.String() }

// RowSortName is for the name by which an order is sorted.
func RowSortName(order fmt.Stringer) string { return "order_name/" + order.String() }

// RowAnswer is for the answer of an idempotency key, in the form in which a store knows the key
// within its team.
func RowAnswer(key string) string { return "order_key/" + key }

// RowResult is for a result under review.
func RowResult(id fmt.Stringer) string { return "raw_result/" + id.String() }

// RowMatchTestRun is for a test run of matching.
func RowMatchTestRun(id fmt.Stringer) string { return "result_trial/" + id.String() }

// RowInsurance is for an insurance record.
func RowInsurance(id fmt.Stringer) string { return "insurance/" + id.String() }

// RowParsingJob is for a job that parses a lab report.
func RowParsingJob(id fmt.Stringer) string { return "parsing_job/" + id.String() }

// RowLabRecord is for what a laboratory's backend knows of an order.
func RowLabRecord(lab, number string) string { return "lab_record/" + lab + "/" + number }

// RowLabDelivery is for a message of a laboratory.
func RowLabDelivery(lab, key string) string { return "lab_delivery/" + lab + "/" + key }

// RowLabMessage is for an entry of a laboratory's feed.
func RowLabMessage(lab string, place int64) string {
	return "lab_message/" + lab + "/" + strconv.FormatInt(place, 10)
}

// RowFile is for a file, or the key that encrypts it.
func RowFile(key string) string { return "file/" + key }

// RowSeries is what the names of a series begin with: "samples/" and its natural key. The texts of
// the key have no NUL.
func RowSeries(resource, provider, sourceType, part string) string {
	return "samples/" + strings.Join([]string{resource, provider, sourceType, part}, "\x00")
}

// RowChunkHeader is for what sums up a chunk or a segment of a series, by the time of its first
// sample in microseconds since 1970; series is of [RowSeries].
func RowChunkHeader(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/header"
}

// RowChunkData is for the samples of a chunk or a segment, as RowChunkHeader.
func RowChunkData(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/data"
}

// RowTail is for a piece of the tail of a series, wherever it stands in the tail; series is of
// [RowSeries].
func RowTail(series string) string { return series + "/tail" }

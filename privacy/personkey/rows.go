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

// RowBirthDate and RowUserInfo are the row names of values that a user has once.
const (
	RowBirthDate = "users.birth_date"
	RowUserInfo  = "user_info"
)

// RowRecordDoc returns the row name of a record's JSON, with which it is encrypted.
func RowRecordDoc(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/doc"
}

// RowRecordRaw returns the row name of the source's payload of a record.
func RowRecordRaw(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/raw"
}

// RowEvent returns the row name of an event's body.
func RowEvent(id fmt.Stringer) string { return "webhook_event/" + id.String() }

// RowResultTable returns the row name of the result table of a continuous query.
func RowResultTable(query fmt.Stringer) string { return "continuous_result/" + query.String() }

// RowOrder returns the row name of an order.
func RowOrder(id fmt.Stringer) string { return "order/" + id.String() }

// RowSortName returns the row name of the name by which an order is sorted.
func RowSortName(order fmt.Stringer) string { return "order_name/" + order.String() }

// RowAnswer returns the row name of the answer of an idempotency key, in the store's form of the key within its
// team.
func RowAnswer(key string) string { return "order_key/" + key }

// RowResult returns the row name of a result under review.
func RowResult(id fmt.Stringer) string { return "raw_result/" + id.String() }

// RowMatchTestRun returns the row name of a test run of matching.
func RowMatchTestRun(id fmt.Stringer) string { return "result_trial/" + id.String() }

// RowInsurance returns the row name of an insurance record.
func RowInsurance(id fmt.Stringer) string { return "insurance/" + id.String() }

// RowParsingJob returns the row name of a job that parses a lab report.
func RowParsingJob(id fmt.Stringer) string { return "parsing_job/" + id.String() }

// RowLabRecord returns the row name of the data that a laboratory's backend has about an order.
func RowLabRecord(lab, number string) string { return "lab_record/" + lab + "/" + number }

// RowLabDelivery returns the row name of a received message of a laboratory.
func RowLabDelivery(lab, key string) string { return "lab_delivery/" + lab + "/" + key }

// RowLabMessage returns the row name of an entry of a laboratory's feed.
func RowLabMessage(lab string, place int64) string {
	return "lab_message/" + lab + "/" + strconv.FormatInt(place, 10)
}

// RowFile returns the row name of a file, or of the key that encrypts the file.
func RowFile(key string) string { return "file/" + key }

// RowSeries returns the prefix of the row names of a series: "samples/" and the natural key of the series. The
// texts of that key have no NUL.
func RowSeries(resource, provider, sourceType, part string) string {
	return "samples/" + strings.Join([]string{resource, provider, sourceType, part}, "\x00")
}

// RowChunkHeader returns the row name of the header of a chunk or segment of a series, by the time of its first
// sample in microseconds since 1970; series is from [RowSeries].
func RowChunkHeader(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/header"
}

// RowChunkData returns the row name of the samples of a chunk or segment, with the arguments of RowChunkHeader.
func RowChunkData(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/data"
}

// RowTail returns the row name of the entries in the tail of a series, whatever their position there; series is
// from [RowSeries].
func RowTail(series string) string { return series + "/tail" }

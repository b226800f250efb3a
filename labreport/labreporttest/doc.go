// Package labreporttest has the conformance suites of the interfaces of package labreport: [RunStore] checks
// [labreport.Store], [RunErasure] what becomes of the jobs of a user who is deleted or erased, [RunBlobStore] checks
// [labreport.BlobStore], [RunBlobEncryption] that it encrypts with a key for each user, and [RunTextExtractor] checks
// [labreport.TextExtractor].
//
//	func TestJobs(t *testing.T) {
//		labreporttest.RunStore(t, func(testing.TB) labreporttest.StoreHarness {
//			s := memory.New(nil)
//			return labreporttest.StoreHarness{Jobs: s.ParsingJobs(), Messages: s.WebhookLog()}
//		})
//	}
//
//	func TestExtractor(t *testing.T) {
//		labreporttest.RunTextExtractor(t, func(t testing.TB) labreporttest.ExtractorHarness {
//			return labreporttest.ExtractorHarness{
//				Extractor: New(), File: twoPages(t), Words: [][]string{{"Glucose", "112"}, {"Sodium"}},
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package labreporttest

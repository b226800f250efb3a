// Package personexport makes exports of all stored data about a person: a ZIP file of
// documents that other programs read.
//
// An export is a job. [Service.Start] stores it, [Service.Run] writes its files one after
// another, and [Service.Open] returns the ZIP file once the job is completed. Each file is
// stored by itself, and the job is updated after it. A process that ends loses the file under
// way and no other; another process continues the job when the lease has ended. Files are
// streamed: memory does not grow with the amount of data.
//
//	exports, err := personexport.New(store, files, users, map[string]personexport.Source{"samples": samples}, nil)
//	job, err := exports.Start(ctx, team, user)
//	go exports.Run(ctx)
//	archive, err := exports.Open(ctx, team, user, job.ID)
//	err = archive.Write(ctx, w)
//
// Completed exports are deleted after [Options].Keep, and when the person is erased.
//
// Names to know: [Service], [Store], [Source], [Job], [PublishedJob].
package personexport

// Package appointment answers one question: where and when can a sample be taken?
//
// A [Service] finds who visits patients in an area, which patient service centers are near,
// and which times are free, in the answers of a [SlotBackend]. Each free time has a booking
// key under seal. Package orders books it: an appointment belongs to an order.
//
// The life of an appointment is a table: [Next] asks it, [Diagram] draws it, [Statuses]
// lists what an appointment can be. [Centers] and [Zips] say where places are; [CenterIndex]
// is a Centers in memory, which [ReadCentersCSV] reads from a table.
//
// Times of slots are instants; days are local days of the place. Distances are in statute
// miles on a spherical earth.
package appointment

// Files in the order of reading: each uses those before it.
//
//	zone.go place.go lifecycle.go center.go backend.go center_index.go center_csv.go errors.go opening_hours.go
//	service.go booking_key.go area.go slots.go slot_cache.go rows.go

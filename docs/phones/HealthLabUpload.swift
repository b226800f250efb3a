// HealthLabUpload sends what Apple HealthKit has of a person to a healthlab service: steps and
// heart rates with their sources, nights with stages, workouts, and deletions.
//
// The example is not compiled by the tests of this repository, which have no Swift compiler. They
// replay the bodies of requests.json, which have the members that this file sends.
//
// It needs the HealthKit capability, NSHealthShareUsageDescription in Info.plist, and iOS 16.

import Foundation
import HealthKit

/// Resources that are sent as samples: the resource's path, the type in the store, and the unit
/// that the value is sent in (docs/phones.md).
let sampleKinds: [(path: String, type: HKQuantityTypeIdentifier, unit: HKUnit, name: String, interval: Bool)] = [
    ("steps", .stepCount, .count(), "count", true),
    ("distance", .distanceWalkingRunning, .meter(), "m", true),
    ("calories_active", .activeEnergyBurned, .kilocalorie(), "kcal", true),
    ("heartrate", .heartRate, HKUnit.count().unitDivided(by: .minute()), "count/min", false),
    ("respiratory_rate", .respiratoryRate, HKUnit.count().unitDivided(by: .minute()), "count/min", false),
    ("blood_oxygen", .oxygenSaturation, .percent(), "fraction", false),
    ("body_weight", .bodyMass, .gramUnit(with: .kilo), "kg", false),
]

struct Device: Encodable { var id: String?; var manufacturer: String?; var model: String? }

struct Source: Encodable, Hashable {
    var type: String
    var app_id: String
    var device: Device?

    static func == (a: Source, b: Source) -> Bool { a.type == b.type && a.app_id == b.app_id && a.device?.id == b.device?.id }
    func hash(into hasher: inout Hasher) { hasher.combine(type); hasher.combine(app_id); hasher.combine(device?.id) }
}

struct Sample: Encodable {
    var timestamp: Date?
    var start: Date?
    var end: Date?
    var timezone_offset: Int
    var unit: String
    var value: Double
}

struct Night: Encodable {
    var external_id: String
    var bedtime_start: Date
    var bedtime_stop: Date
    var timezone_offset: Int
    var awake: Int
    var light: Int
    var rem: Int
    var deep: Int
}

struct Stages: Encodable {
    var external_id: String
    var session_start: Date
    var session_end: Date
    var stage_start_offset_second: [Int]
    var stage_end_offset_second: [Int]
    var stage_type: [Int]
}

struct Sport: Encodable { var slug: String }

struct Workout: Encodable {
    var external_id: String
    var time_start: Date
    var time_end: Date
    var timezone_offset: Int
    var sport: Sport
    var calories: Double?
    var distance: Double?
}

struct Upload<Item: Encodable>: Encodable {
    var provider = "apple_health_kit"
    var stage: String
    var source: Source
    var data: [Item]
}

struct SampleRemoval: Encodable {
    var provider = "apple_health_kit"
    var source: Source
    var timestamps: [Date]
}

struct SummaryRemoval: Encodable {
    var provider = "apple_health_kit"
    var source: Source
    var external_ids: [String]
}

struct History: Encodable {
    var provider = "apple_health_kit"
    var resource: String
    var start_date: Date
    var end_date: Date
}

struct SignIn: Encodable { var sign_in_token: String }
struct Renewal: Encodable { var refresh_token: String }
struct Tokens: Codable { var user_id: String; var access_token: String; var refresh_token: String }
struct Connect: Encodable { var user_id: String }

enum UploadError: Error { case refused(status: Int), signInAgain }

/// What was sent of an object of the store, so that its deletion can be sent: the store gives the
/// UUID of a deleted object, and the service removes by timestamp or external id.
struct Sent: Codable { var path: String; var sourceType: String; var appID: String; var timestamp: Date? }

/// Where anchors, tokens and sent objects are kept. An app uses the keychain for the tokens and a
/// database for the objects.
protocol Memory {
    func anchor(_ path: String) -> HKQueryAnchor?
    func tokens() -> Tokens?
    func sent(_ id: UUID) -> Sent?
    func keep(tokens: Tokens)
    /// Keeps the anchor and the objects at once.
    func keep(anchor: HKQueryAnchor, for path: String, sent: [UUID: Sent])
}

actor HealthLabUpload {
    private let base: URL
    private let store = HKHealthStore()
    private let memory: Memory
    private let encoder = JSONEncoder()

    init(base: URL, memory: Memory) {
        self.base = base
        self.memory = memory
        encoder.dateEncodingStrategy = .iso8601
    }

    /// Signs in with a token that the team's server made (POST /v2/user/{user_id}/sign_in_token),
    /// and connects the store.
    func signIn(_ token: String) async throws {
        let answer = try await post("/v2/app/sign_in", SignIn(sign_in_token: token), authorized: false)
        let tokens = try JSONDecoder().decode(Tokens.self, from: answer)
        memory.keep(tokens: tokens)
        _ = try await post("/v2/link/provider/manual/apple_health_kit", Connect(user_id: tokens.user_id))
    }

    /// Sends what has changed since the last call. `stage` is historical for the first call.
    func send(stage: String) async throws {
        for kind in sampleKinds {
            try await samples(kind, stage: stage)
        }
        try await workouts(stage: stage)
    }

    /// Says that all of the history of a resource was sent.
    func finish(resource: String, from: Date, to: Date) async throws {
        let user = try currentUser()
        _ = try await post("/v2/user/\(user)/history", History(resource: resource, start_date: from, end_date: to))
    }

    private func samples(_ kind: (path: String, type: HKQuantityTypeIdentifier, unit: HKUnit, name: String, interval: Bool), stage: String) async throws {
        let user = try currentUser()
        let type = HKQuantityType(kind.type)
        while true {
            let query = HKAnchoredObjectQueryDescriptor(
                predicates: [.quantitySample(type: type)], anchor: memory.anchor(kind.path), limit: 1000)
            let found = try await query.result(for: store)
            var parts: [Source: [Sample]] = [:]
            var sent: [UUID: Sent] = [:]
            for s in found.addedSamples {
                let source = source(of: s)
                let value = s.quantity.doubleValue(for: kind.unit)
                var sample = Sample(timezone_offset: offset(of: s), unit: kind.name, value: value)
                if kind.interval { sample.start = s.startDate; sample.end = s.endDate } else { sample.timestamp = s.startDate }
                parts[source, default: []].append(sample)
                sent[s.uuid] = Sent(path: kind.path, sourceType: source.type, appID: source.app_id, timestamp: s.startDate)
            }
            for (source, data) in parts {
                _ = try await post("/v2/timeseries/\(user)/\(kind.path)", Upload(stage: stage, source: source, data: data))
            }
            for object in found.deletedObjects {
                guard let was = memory.sent(object.uuid), let at = was.timestamp else { continue }
                let source = Source(type: was.sourceType, app_id: was.appID)
                _ = try await post("/v2/timeseries/\(user)/\(kind.path)/remove", SampleRemoval(source: source, timestamps: [at]))
            }
            memory.keep(anchor: found.newAnchor, for: kind.path, sent: sent) // after the answers: what was lost is sent twice
            if found.addedSamples.isEmpty && found.deletedObjects.isEmpty { return }
        }
    }

    private func workouts(stage: String) async throws {
        let user = try currentUser()
        let query = HKAnchoredObjectQueryDescriptor(predicates: [.workout()], anchor: memory.anchor("workouts"))
        let found = try await query.result(for: store)
        var sent: [UUID: Sent] = [:]
        for w in found.addedSamples {
            let source = source(of: w)
            let workout = Workout(
                external_id: w.uuid.uuidString, time_start: w.startDate, time_end: w.endDate, timezone_offset: offset(of: w),
                sport: Sport(slug: slug(w.workoutActivityType)),
                calories: w.statistics(for: HKQuantityType(.activeEnergyBurned))?.sumQuantity()?.doubleValue(for: .kilocalorie()),
                distance: w.statistics(for: HKQuantityType(.distanceWalkingRunning))?.sumQuantity()?.doubleValue(for: .meter()))
            _ = try await post("/v2/summary/workouts/\(user)", Upload(stage: stage, source: source, data: [workout]))
            sent[w.uuid] = Sent(path: "workouts", sourceType: source.type, appID: source.app_id)
        }
        for object in found.deletedObjects {
            guard let was = memory.sent(object.uuid) else { continue }
            let source = Source(type: was.sourceType, app_id: was.appID)
            _ = try await post("/v2/summary/workouts/\(user)/remove", SummaryRemoval(source: source, external_ids: [object.uuid.uuidString]))
        }
        memory.keep(anchor: found.newAnchor, for: "workouts", sent: sent)
    }

    /// Sends a night of one source: the samples of HKCategoryTypeIdentifierSleepAnalysis that are at
    /// most an hour apart, in order.
    func night(_ stages: [HKCategorySample], stage: String) async throws {
        guard let first = stages.first, let end = stages.map(\.endDate).max() else { return }
        let user = try currentUser()
        let source = source(of: first)
        let codes: [HKCategoryValueSleepAnalysis: Int] = [.asleepUnspecified: -1, .asleepDeep: 1, .asleepCore: 2, .asleepREM: 3, .awake: 4]
        var seconds: [Int: Int] = [:]
        let id = "\(source.app_id) \(ISO8601DateFormatter().string(from: first.startDate))"
        var cycle = Stages(external_id: id, session_start: first.startDate, session_end: end,
                           stage_start_offset_second: [], stage_end_offset_second: [], stage_type: [])
        for s in stages {
            guard let value = HKCategoryValueSleepAnalysis(rawValue: s.value), let code = codes[value] else { continue } // in bed
            let from = Int(s.startDate.timeIntervalSince(first.startDate)), to = Int(s.endDate.timeIntervalSince(first.startDate))
            cycle.stage_start_offset_second.append(from)
            cycle.stage_end_offset_second.append(to)
            cycle.stage_type.append(code)
            seconds[code, default: 0] += to - from
        }
        let night = Night(external_id: id, bedtime_start: first.startDate, bedtime_stop: end, timezone_offset: offset(of: first),
                          awake: seconds[4] ?? 0, light: seconds[2] ?? 0, rem: seconds[3] ?? 0, deep: seconds[1] ?? 0)
        _ = try await post("/v2/summary/sleep/\(user)", Upload(stage: stage, source: source, data: [night]))
        _ = try await post("/v2/summary/sleep_cycle/\(user)", Upload(stage: stage, source: source, data: [cycle]))
    }

    /// The source type: the phone and the watch are different sources, so the service does not add
    /// what both counted.
    private func source(of s: HKSample) -> Source {
        let app = s.sourceRevision.source.bundleIdentifier
        let product = s.sourceRevision.productType ?? ""
        var type = "app"
        if app.hasPrefix("com.apple.health") {
            type = product.hasPrefix("Watch") ? "watch" : "phone"
        }
        let d = s.device
        return Source(type: type, app_id: app, device: d.map { Device(id: $0.localIdentifier, manufacturer: $0.manufacturer, model: $0.hardwareVersion) })
    }

    /// Seconds east of UTC where the sample was recorded, if the store knows, else here.
    private func offset(of s: HKSample) -> Int {
        let zone = (s.metadata?[HKMetadataKeyTimeZone] as? String).flatMap(TimeZone.init(identifier:)) ?? .current
        return zone.secondsFromGMT(for: s.startDate)
    }

    private func slug(_ type: HKWorkoutActivityType) -> String {
        switch type {
        case .running: return "running"
        case .cycling: return "cycling"
        case .walking: return "walking"
        case .swimming: return "swimming"
        default: return "other"
        }
    }

    private func currentUser() throws -> String {
        guard let tokens = memory.tokens() else { throw UploadError.signInAgain }
        return tokens.user_id
    }

    /// Posts a document. An access token that has ended is renewed once.
    private func post<Body: Encodable>(_ path: String, _ body: Body, authorized: Bool = true) async throws -> Data {
        for attempt in 0..<6 {
            var request = URLRequest(url: base.appendingPathComponent(path))
            request.httpMethod = "POST"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            if authorized, let tokens = memory.tokens() {
                request.setValue("Bearer \(tokens.access_token)", forHTTPHeaderField: "Authorization")
            }
            request.httpBody = try encoder.encode(body)
            let (answer, response) = try await URLSession.shared.data(for: request)
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            switch status {
            case 200: return answer
            case 401 where authorized && attempt == 0: try await renew()
            case 429, 500...599 where attempt < 5: try await Task.sleep(nanoseconds: UInt64(1 << attempt) * 1_000_000_000)
            default: throw UploadError.refused(status: status)
            }
        }
        throw UploadError.signInAgain
    }

    private func renew() async throws {
        guard let old = memory.tokens() else { throw UploadError.signInAgain }
        let answer = try await post("/v2/app/refresh", Renewal(refresh_token: old.refresh_token), authorized: false)
        memory.keep(tokens: try JSONDecoder().decode(Tokens.self, from: answer))
    }
}

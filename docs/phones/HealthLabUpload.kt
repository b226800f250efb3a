// HealthLabUpload sends what Health Connect has of a person to a healthlab service: steps and heart
// rates with their sources, nights with stages, workouts, and deletions.
//
// The example is not compiled by the tests of this repository, which have no Kotlin compiler. They
// replay the bodies of requests.json, which have the members that this file sends.
//
// It needs androidx.health.connect:connect-client, kotlinx-coroutines and OkHttp, and the read
// permission of each record type.

import androidx.health.connect.client.HealthConnectClient
import androidx.health.connect.client.changes.DeletionChange
import androidx.health.connect.client.changes.UpsertionChange
import androidx.health.connect.client.records.ActiveCaloriesBurnedRecord
import androidx.health.connect.client.records.DistanceRecord
import androidx.health.connect.client.records.ExerciseSessionRecord
import androidx.health.connect.client.records.HeartRateRecord
import androidx.health.connect.client.records.Record
import androidx.health.connect.client.records.SleepSessionRecord
import androidx.health.connect.client.records.StepsRecord
import androidx.health.connect.client.records.metadata.Device
import androidx.health.connect.client.request.AggregateRequest
import androidx.health.connect.client.request.ChangesTokenRequest
import androidx.health.connect.client.request.ReadRecordsRequest
import androidx.health.connect.client.time.TimeRangeFilter
import java.io.IOException
import java.time.Duration
import java.time.Instant
import java.time.ZoneOffset
import kotlin.reflect.KClass
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.withContext
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.json.JSONArray
import org.json.JSONObject

/** What was sent of a record, so that its deletion can be sent: the store gives the id alone. */
data class Sent(val path: String, val sourceType: String, val appId: String, val timestamps: List<Instant>, val externalId: String?)

data class Tokens(val userId: String, val accessToken: String, val refreshToken: String)

/** Where tokens, the changes token and sent records are kept. Tokens belong into encrypted storage. */
interface Memory {
    fun tokens(): Tokens?
    fun keepTokens(tokens: Tokens)
    fun changesToken(): String?
    fun keepChangesToken(token: String)
    fun sent(recordId: String): List<Sent>
    fun keepSent(recordId: String, sent: List<Sent>)
}

class RefusedException(val status: Int) : IOException("the service answers $status")

class HealthLabUpload(private val base: String, private val store: HealthConnectClient, private val memory: Memory) {
    private val http = OkHttpClient()
    private val json = "application/json".toMediaType()
    private val provider = "health_connect"
    private val types: Set<KClass<out Record>> =
        setOf(StepsRecord::class, HeartRateRecord::class, SleepSessionRecord::class, ExerciseSessionRecord::class)

    /** Signs in with a token that the team's server made, and connects the store. */
    suspend fun signIn(token: String) {
        val answer = post("/v2/app/sign_in", JSONObject().put("sign_in_token", token), authorized = false)
        memory.keepTokens(tokensOf(answer))
        post("/v2/link/provider/manual/health_connect", JSONObject().put("user_id", memory.tokens()!!.userId))
    }

    /** Sends all of a range, and remembers from where changes are read afterwards. */
    suspend fun sendHistory(from: Instant, to: Instant) {
        memory.keepChangesToken(store.getChangesToken(ChangesTokenRequest(types))) // before reading: nothing is missed
        for (type in types) {
            var page: String? = null
            do {
                val found = store.readRecords(ReadRecordsRequest(type, TimeRangeFilter.between(from, to), pageToken = page))
                found.records.forEach { send(it, "historical") }
                page = found.pageToken
            } while (page != null)
        }
        for (resource in listOf("steps", "heartrate", "sleep", "workouts")) {
            post(
                "/v2/user/${user()}/history",
                JSONObject().put("provider", provider).put("resource", resource).put("start_date", from.toString()).put("end_date", to.toString()),
            )
        }
    }

    /** Sends what has changed. A changes token works for 30 days; after that the last 30 days are sent again. */
    suspend fun sendChanges() {
        var token = memory.changesToken() ?: return
        while (true) {
            val changes = store.getChanges(token)
            if (changes.changesTokenExpired) {
                return sendHistory(Instant.now().minus(Duration.ofDays(30)), Instant.now())
            }
            for (change in changes.changes) {
                when (change) {
                    is UpsertionChange -> {
                        remove(change.record.metadata.id) // its times may have moved
                        send(change.record, "daily")
                    }
                    is DeletionChange -> remove(change.recordId)
                }
            }
            token = changes.nextChangesToken
            memory.keepChangesToken(token) // after the answers: what was lost is sent twice
            if (!changes.hasMore) return
        }
    }

    private suspend fun send(record: Record, stage: String) {
        val source = sourceOf(record)
        val id = record.metadata.id
        when (record) {
            is StepsRecord -> {
                val item = JSONObject().put("start", record.startTime.toString()).put("end", record.endTime.toString())
                    .put("timezone_offset", seconds(record.startZoneOffset)).put("unit", "count").put("value", record.count)
                post("/v2/timeseries/${user()}/steps", upload(stage, source, JSONArray().put(item)))
                kept(id, "steps", source, listOf(record.startTime), null)
            }
            is HeartRateRecord -> {
                val data = JSONArray()
                for (s in record.samples) {
                    data.put(
                        JSONObject().put("timestamp", s.time.toString()).put("timezone_offset", seconds(record.startZoneOffset))
                            .put("unit", "bpm").put("value", s.beatsPerMinute),
                    )
                }
                post("/v2/timeseries/${user()}/heartrate", upload(stage, source, data))
                kept(id, "heartrate", source, record.samples.map { it.time }, null)
            }
            is SleepSessionRecord -> sendNight(record, source, stage)
            is ExerciseSessionRecord -> {
                val item = JSONObject().put("external_id", id).put("time_start", record.startTime.toString())
                    .put("time_end", record.endTime.toString()).put("timezone_offset", seconds(record.startZoneOffset))
                    .put("sport", JSONObject().put("slug", sport(record.exerciseType)))
                val sums = store.aggregate(
                    AggregateRequest(
                        setOf(ActiveCaloriesBurnedRecord.ACTIVE_CALORIES_TOTAL, DistanceRecord.DISTANCE_TOTAL),
                        TimeRangeFilter.between(record.startTime, record.endTime), setOf(record.metadata.dataOrigin),
                    ),
                )
                sums[ActiveCaloriesBurnedRecord.ACTIVE_CALORIES_TOTAL]?.let { item.put("calories", it.inKilocalories) }
                sums[DistanceRecord.DISTANCE_TOTAL]?.let { item.put("distance", it.inMeters) }
                post("/v2/summary/workouts/${user()}", upload(stage, source, JSONArray().put(item)))
                kept(id, "workouts", source, listOf(), id)
            }
        }
    }

    private suspend fun sendNight(record: SleepSessionRecord, source: JSONObject, stage: String) {
        val codes = mapOf(
            SleepSessionRecord.STAGE_TYPE_SLEEPING to -1, SleepSessionRecord.STAGE_TYPE_DEEP to 1, SleepSessionRecord.STAGE_TYPE_LIGHT to 2,
            SleepSessionRecord.STAGE_TYPE_REM to 3, SleepSessionRecord.STAGE_TYPE_AWAKE to 4, SleepSessionRecord.STAGE_TYPE_AWAKE_IN_BED to 4,
        )
        val starts = JSONArray()
        val ends = JSONArray()
        val stageTypes = JSONArray()
        val total = mutableMapOf<Int, Long>()
        for (s in record.stages) {
            val code = codes[s.stage] ?: continue
            val from = Duration.between(record.startTime, s.startTime).seconds
            val to = Duration.between(record.startTime, s.endTime).seconds
            starts.put(from)
            ends.put(to)
            stageTypes.put(code)
            total[code] = (total[code] ?: 0) + to - from
        }
        val id = record.metadata.id
        val night = JSONObject().put("external_id", id).put("bedtime_start", record.startTime.toString())
            .put("bedtime_stop", record.endTime.toString()).put("timezone_offset", seconds(record.startZoneOffset))
            .put("awake", total[4] ?: 0).put("light", total[2] ?: 0).put("rem", total[3] ?: 0).put("deep", total[1] ?: 0)
        post("/v2/summary/sleep/${user()}", upload(stage, source, JSONArray().put(night)))
        val cycle = JSONObject().put("external_id", id).put("session_start", record.startTime.toString())
            .put("session_end", record.endTime.toString()).put("stage_start_offset_second", starts)
            .put("stage_end_offset_second", ends).put("stage_type", stageTypes)
        post("/v2/summary/sleep_cycle/${user()}", upload(stage, source, JSONArray().put(cycle)))
        kept(id, "sleep", source, listOf(), id)
    }

    /** Removes what was sent of a record. Removing a night removes its stages, too. */
    private suspend fun remove(recordId: String) {
        for (was in memory.sent(recordId)) {
            val source = JSONObject().put("type", was.sourceType).put("app_id", was.appId)
            val body = JSONObject().put("provider", provider).put("source", source)
            if (was.externalId != null) {
                post("/v2/summary/${was.path}/${user()}/remove", body.put("external_ids", JSONArray().put(was.externalId)))
            } else {
                post("/v2/timeseries/${user()}/${was.path}/remove", body.put("timestamps", JSONArray(was.timestamps.map { it.toString() })))
            }
        }
        memory.keepSent(recordId, listOf())
    }

    private fun kept(recordId: String, path: String, source: JSONObject, timestamps: List<Instant>, externalId: String?) =
        memory.keepSent(recordId, listOf(Sent(path, source.getString("type"), source.getString("app_id"), timestamps, externalId)))

    /** The phone and the watch are different sources, so the service does not add what both counted. */
    private fun sourceOf(record: Record): JSONObject {
        val device = record.metadata.device
        val type = when (device?.type) {
            Device.TYPE_WATCH, Device.TYPE_FITNESS_BAND -> "watch"
            Device.TYPE_PHONE -> "phone"
            Device.TYPE_RING -> "ring"
            Device.TYPE_SCALE -> "scale"
            Device.TYPE_CHEST_STRAP -> "chest_strap"
            else -> "app"
        }
        val source = JSONObject().put("type", type).put("app_id", record.metadata.dataOrigin.packageName)
        if (device?.model != null) {
            source.put("device", JSONObject().put("manufacturer", device.manufacturer).put("model", device.model))
        }
        return source
    }

    private fun upload(stage: String, source: JSONObject, data: JSONArray): JSONObject =
        JSONObject().put("provider", provider).put("stage", stage).put("source", source).put("data", data)

    private fun seconds(offset: ZoneOffset?): Any = offset?.totalSeconds ?: JSONObject.NULL

    private fun sport(type: Int): String = when (type) {
        ExerciseSessionRecord.EXERCISE_TYPE_RUNNING -> "running"
        ExerciseSessionRecord.EXERCISE_TYPE_BIKING -> "cycling"
        ExerciseSessionRecord.EXERCISE_TYPE_WALKING -> "walking"
        else -> "other"
    }

    private fun user(): String = memory.tokens()?.userId ?: throw IllegalStateException("sign in first")

    private fun tokensOf(answer: JSONObject) =
        Tokens(answer.getString("user_id"), answer.getString("access_token"), answer.getString("refresh_token"))

    /** Posts a document. An access token that has ended is renewed once. */
    private suspend fun post(path: String, body: JSONObject, authorized: Boolean = true): JSONObject {
        for (attempt in 0..5) {
            val request = Request.Builder().url(base + path).post(body.toString().toRequestBody(json))
            if (authorized) memory.tokens()?.let { request.header("Authorization", "Bearer ${it.accessToken}") }
            val (status, text) = withContext(Dispatchers.IO) {
                http.newCall(request.build()).execute().use { it.code to it.body!!.string() }
            }
            when {
                status == 200 -> return JSONObject(text)
                status == 401 && authorized && attempt == 0 -> renew()
                status == 429 || status >= 500 -> delay(1000L shl attempt)
                else -> throw RefusedException(status)
            }
        }
        throw IOException("the service cannot be reached")
    }

    private suspend fun renew() {
        val old = memory.tokens() ?: throw IllegalStateException("sign in first")
        memory.keepTokens(tokensOf(post("/v2/app/refresh", JSONObject().put("refresh_token", old.refreshToken), authorized = false)))
    }
}

import com.alibaba.fastjson.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages, queues and results, to and from JSON. */
final class Messages {
    private static final int BODY_SHOWN_MAX = 4096;

    private Messages() {
    }

    static Message read(JSONObject json) {
        byte[] body;
        if (json.containsKey("bodySize")) {
            body = new byte[json.getIntValue("bodySize")];
            Arrays.fill(body, (byte) 'x');
        } else {
            body = json.getString("body").getBytes(StandardCharsets.UTF_8);
        }
        Message message = new Message(json.getString("topic"), body);
        if (json.containsKey("tags")) {
            message.setTags(json.getString("tags"));
        }
        if (json.containsKey("keys")) {
            message.setKeys(json.getString("keys"));
        }
        if (json.containsKey("flag")) {
            message.setFlag(json.getIntValue("flag"));
        }
        if (json.containsKey("delayLevel")) {
            message.setDelayTimeLevel(json.getIntValue("delayLevel"));
        }
        if (json.containsKey("waitStoreMsgOK")) {
            message.setWaitStoreMsgOK(json.getBooleanValue("waitStoreMsgOK"));
        }
        JSONObject properties = json.getJSONObject("properties");
        if (properties != null) {
            for (Map.Entry<String, Object> entry : properties.entrySet()) {
                MessageAccessor.putProperty(message, entry.getKey(), String.valueOf(entry.getValue()));
            }
        }
        return message;
    }

    static List<JSONObject> show(List<MessageExt> messages) {
        List<JSONObject> shown = new ArrayList<>();
        for (MessageExt message : messages) {
            shown.add(show(message));
        }
        return shown;
    }

    static JSONObject show(MessageExt message) {
        JSONObject json = new JSONObject();
        json.put("topic", message.getTopic());
        json.put("tags", message.getTags());
        json.put("keys", message.getKeys());
        json.put("flag", message.getFlag());
        json.put("properties", message.getProperties());
        json.put("queueId", message.getQueueId());
        json.put("queueOffset", message.getQueueOffset());
        json.put("msgId", message.getMsgId());
        json.put("offsetMsgId", message instanceof MessageClientExt
            ? ((MessageClientExt) message).getOffsetMsgId() : message.getMsgId());
        json.put("reconsumeTimes", message.getReconsumeTimes());
        json.put("bornTimestamp", message.getBornTimestamp());
        json.put("storeTimestamp", message.getStoreTimestamp());
        json.put("sysFlag", message.getSysFlag());
        json.put("brokerName", message.getBrokerName());
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        json.put("bodySize", body.length);
        if (body.length <= BODY_SHOWN_MAX) {
            json.put("body", new String(body, StandardCharsets.UTF_8));
        } else {
            CRC32 crc = new CRC32();
            crc.update(body);
            json.put("bodyCrc", crc.getValue());
        }
        return json;
    }

    static JSONObject show(SendResult result) {
        JSONObject json = new JSONObject();
        json.put("status", result.getSendStatus().name());
        json.put("msgId", result.getMsgId());
        json.put("offsetMsgId", result.getOffsetMsgId());
        json.put("queueOffset", result.getQueueOffset());
        json.put("transactionId", result.getTransactionId());
        json.put("queueId", result.getMessageQueue().getQueueId());
        json.put("brokerName", result.getMessageQueue().getBrokerName());
        json.put("topic", result.getMessageQueue().getTopic());
        json.put("regionId", result.getRegionId());
        try {
            json.put("recallHandle", SendResult.class.getMethod("getRecallHandle").invoke(result));
        } catch (ReflectiveOperationException absent) {
            json.put("recallHandle", null); // before 5.4
        }
        return json;
    }

    static JSONObject show(MessageQueue queue) {
        JSONObject json = new JSONObject();
        json.put("topic", queue.getTopic());
        json.put("brokerName", queue.getBrokerName());
        json.put("queueId", queue.getQueueId());
        return json;
    }

    static MessageQueue queue(JSONObject json) {
        return new MessageQueue(
            json.getString("topic"), json.getString("brokerName"), json.getIntValue("queueId"));
    }

    static List<MessageQueue> queues(List<?> list) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object item : list) {
            queues.add(queue((JSONObject) item));
        }
        return queues;
    }
}

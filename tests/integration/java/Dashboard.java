import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * The calls of MQAdminExt that RocketMQ's dashboard makes, page by page, beside a running producer and
 * consumer. One line for each: its name and what came, in an order of its own.
 */
public class Dashboard {
    private static final String TOPIC = "Watched";
    private static final String GROUP = "watchers";
    private static final int COUNT = 8;
    private static final int DEPTH_MAX = 8;

    private static DefaultMQAdminExt admin;

    public static void main(String[] arguments) throws Exception {
        String namesrv = arguments[0];
        String broker = arguments[1];
        System.setProperty("rocketmq.namesrv.addr", namesrv);
        admin = new DefaultMQAdminExt(5000);
        admin.setInstanceName("dashboard");
        admin.start();
        topicPage(broker);
        CountDownLatch consumed = new CountDownLatch(COUNT);
        DefaultMQPushConsumer consumer = consumer(consumed);
        DefaultMQProducer producer = new DefaultMQProducer("watched-producers");
        producer.start();
        List<SendResult> sent = new ArrayList<>();
        for (int number = 0; number < COUNT; number++) {
            Message message = new Message(TOPIC, "TagA", "key" + number,
                ("body " + number).getBytes(StandardCharsets.UTF_8));
            sent.add(producer.send(message, new MessageQueue(TOPIC, "broker-a", number % 4)));
        }
        if (!consumed.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not consumed");
        }
        persistOffsets(consumer);
        awaitIndex();
        clusterPage(broker);
        statisticsOf(TOPIC);
        messagePage(sent);
        consumerPage(broker);
        producerPage(broker);
        opsPage(namesrv);
        consumer.shutdown();
        producer.shutdown();
        cleaning(broker);
        System.out.println("all calls are made");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static DefaultMQPushConsumer consumer(CountDownLatch consumed) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(GROUP);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> consumed.countDown());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    /** Offsets are told every five seconds; here at once, and the broker is asked until it has them. */
    private static void persistOffsets(DefaultMQPushConsumer consumer) throws Exception {
        for (int tries = 0; tries < 200; tries++) {
            consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
            if (admin.examineConsumeStats(GROUP, TOPIC).computeTotalDiff() == 0) {
                return;
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException("offsets did not arrive");
    }

    /** A Java broker indexes a moment after it acknowledges. */
    private static void awaitIndex() throws Exception {
        for (int tries = 0; tries < 200; tries++) {
            try {
                if (!admin.queryMessage(TOPIC, "key" + (COUNT - 1), 1, 0, Long.MAX_VALUE).getMessageList().isEmpty()) {
                    return;
                }
            } catch (MQClientException notYet) {
                Thread.sleep(50);
            }
        }
        throw new IllegalStateException("no index");
    }

    private static void topicPage(String broker) {
        TopicConfig config = new TopicConfig(TOPIC, 4, 4, 6);
        done("createAndUpdateTopicConfig", () -> admin.createAndUpdateTopicConfig(broker, config));
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName(GROUP);
        done("createAndUpdateSubscriptionGroupConfig",
            () -> admin.createAndUpdateSubscriptionGroupConfig(broker, group));
        show("fetchAllTopicList has it", () -> admin.fetchAllTopicList().getTopicList().contains(TOPIC));
        show("examineTopicConfig", () -> admin.examineTopicConfig(broker, TOPIC));
        show("examineTopicRouteInfo", () -> admin.examineTopicRouteInfo(TOPIC));
        show("getUserTopicConfig", () -> admin.getUserTopicConfig(broker, true, 5000).getTopicConfigTable().get(TOPIC));
        show("getAllTopicConfig", () -> admin.getAllTopicConfig(broker, 5000).getTopicConfigTable().keySet());
        show("getTopicClusterList", () -> admin.getTopicClusterList(TOPIC));
        show("getClusterList", () -> admin.getClusterList(TOPIC));
    }

    private static void clusterPage(String broker) {
        show("examineBrokerClusterInfo", () -> admin.examineBrokerClusterInfo());
        show("fetchBrokerRuntimeStats, keys", () -> runtimeKeys(broker));
        show("getBrokerConfig, keys", () -> admin.getBrokerConfig(broker).stringPropertyNames());
        show("getBrokerHAStatus", () -> admin.getBrokerHAStatus(broker).isMaster());
        for (String name : List.of("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE")) {
            show("viewBrokerStatsData " + name,
                () -> admin.viewBrokerStatsData(broker, name, TOPIC) != null);
        }
        for (String name : List.of("GROUP_GET_NUMS", "GROUP_GET_SIZE")) {
            show("viewBrokerStatsData " + name,
                () -> admin.viewBrokerStatsData(broker, name, TOPIC + "@" + GROUP) != null);
        }
        show("viewBrokerStatsData of nobody", () -> admin.viewBrokerStatsData(broker, "TOPIC_PUT_NUMS", "nobody"));
        show("fetchConsumeStatsInBroker",
            () -> admin.fetchConsumeStatsInBroker(broker, false, 5000).getConsumeStatsList().stream()
                .anyMatch(table -> table.containsKey(GROUP)));
    }

    /** Some keys name what differs: a folder, or a lane that Java has threads for. */
    private static Object runtimeKeys(String broker) throws Exception {
        List<String> keys = new ArrayList<>();
        for (String key : admin.fetchBrokerRuntimeStats(broker).getTable().keySet()) {
            if (!key.startsWith("commitLogDiskRatio_") && !key.startsWith("scheduleMessageOffset_")) {
                keys.add(key);
            }
        }
        return keys;
    }

    private static void statisticsOf(String topic) {
        show("examineTopicStats", () -> admin.examineTopicStats(topic).getOffsetTable());
        show("examineTopicStats at a broker",
            () -> admin.examineTopicStatsConcurrent(topic).getData().getOffsetTable().keySet());
        show("queryTopicConsumeByWho", () -> admin.queryTopicConsumeByWho(topic));
        show("maxOffset", () -> admin.maxOffset(new MessageQueue(topic, "broker-a", 1)));
        show("minOffset", () -> admin.minOffset(new MessageQueue(topic, "broker-a", 1)));
        show("searchOffset", () -> admin.searchOffset(new MessageQueue(topic, "broker-a", 1), 0));
        show("earliestMsgStoreTime", () -> admin.earliestMsgStoreTime(new MessageQueue(topic, "broker-a", 1)) > 0);
        show("queryConsumeTimeSpan", () -> admin.queryConsumeTimeSpan(topic, GROUP));
    }

    private static void messagePage(List<SendResult> sent) throws Exception {
        SendResult one = sent.get(3);
        show("viewMessage", () -> admin.viewMessage(TOPIC, one.getMsgId()));
        show("viewMessage by place", () -> admin.viewMessage(TOPIC, one.getOffsetMsgId()));
        show("queryMessage", () -> admin.queryMessage(TOPIC, "key3", 64, 0, Long.MAX_VALUE).getMessageList());
        show("queryMessage in a cluster", () -> admin.queryMessage("DefaultCluster", TOPIC, "key3", 64, 0,
            Long.MAX_VALUE).getMessageList().size());
        MessageExt message = admin.viewMessage(TOPIC, one.getMsgId());
        show("messageTrackDetail", () -> admin.messageTrackDetail(message));
        String client = admin.examineConsumerConnectionInfo(GROUP).getConnectionSet().iterator().next().getClientId();
        show("consumeMessageDirectly",
            () -> admin.consumeMessageDirectly(GROUP, client, TOPIC, one.getMsgId()).getConsumeResult());
    }

    private static void consumerPage(String broker) throws Exception {
        show("getAllSubscriptionGroup",
            () -> admin.getAllSubscriptionGroup(broker, 5000).getSubscriptionGroupTable().keySet());
        show("getUserSubscriptionGroup",
            () -> admin.getUserSubscriptionGroup(broker, 5000).getSubscriptionGroupTable().containsKey(GROUP));
        show("examineSubscriptionGroupConfig", () -> admin.examineSubscriptionGroupConfig(broker, GROUP));
        show("examineConsumeStats", () -> admin.examineConsumeStats(GROUP).getOffsetTable());
        show("examineConsumeStats of a topic", () -> admin.examineConsumeStats(GROUP, TOPIC).getOffsetTable());
        ConsumerConnection online = admin.examineConsumerConnectionInfo(GROUP);
        show("examineConsumerConnectionInfo", () -> List.of(online.getConsumeType(), online.getMessageModel(),
            online.getConsumeFromWhere(), online.getSubscriptionTable().keySet(), online.getConnectionSet().size()));
        String client = online.getConnectionSet().iterator().next().getClientId();
        show("getConsumerRunningInfo", () -> admin.getConsumerRunningInfo(GROUP, client, true).getMqTable().keySet());
        show("getConsumeStatus", () -> admin.getConsumeStatus(TOPIC, GROUP, client).size());
        show("queryTopicsByConsumer", () -> admin.queryTopicsByConsumer(GROUP));
        show("querySubscription", () -> admin.querySubscription(GROUP, TOPIC));
        show("resetOffsetByTimestamp", () -> admin.resetOffsetByTimestamp(TOPIC, GROUP, 0, true).keySet());
        show("an unknown group", () -> admin.examineConsumerConnectionInfo("nobody"));
        show("an unknown group's progress", () -> admin.examineConsumeStats("nobody"));
        show("an unknown topic", () -> admin.examineTopicStats("Nothing"));
    }

    private static void producerPage(String broker) {
        show("examineProducerConnectionInfo",
            () -> admin.examineProducerConnectionInfo("watched-producers", TOPIC).getConnectionSet().size());
        show("getAllProducerInfo", () -> admin.getAllProducerInfo(broker).getData().keySet());
        show("an unknown producer", () -> admin.examineProducerConnectionInfo("nobody", TOPIC));
        show("listUser", () -> admin.listUser(broker, ""));
        show("listAcl", () -> admin.listAcl(broker, "", ""));
    }

    private static void opsPage(String namesrv) {
        show("getNameServerAddressList", () -> admin.getNameServerAddressList().size());
        show("getNameServerConfig",
            () -> admin.getNameServerConfig(List.of(namesrv)).values().iterator().next().stringPropertyNames());
        done("putKVConfig", () -> admin.createAndUpdateKvConfig("DASHBOARD", "key", "value"));
        show("getKVConfig", () -> admin.getKVConfig("DASHBOARD", "key"));
        show("getKVListByNamespace", () -> admin.getKVListByNamespace("DASHBOARD"));
        done("deleteKvConfig", () -> admin.deleteKvConfig("DASHBOARD", "key"));
    }

    private static void cleaning(String broker) {
        show("cleanExpiredConsumerQueue", () -> admin.cleanExpiredConsumerQueueByAddr(broker));
        show("cleanUnusedTopic", () -> admin.cleanUnusedTopicByAddr(broker));
        show("resetOffsetByTimestampOld",
            () -> admin.resetOffsetByTimestampOld(GROUP, TOPIC, 0, true).size());
        done("cloneGroupOffset", () -> admin.cloneGroupOffset(GROUP, "copies", TOPIC, true));
        done("deleteSubscriptionGroup", () -> admin.deleteSubscriptionGroup(broker, GROUP, true));
        done("deleteTopicInBroker", () -> admin.deleteTopicInBroker(Set.of(broker), TOPIC));
        done("deleteTopicInNameServer",
            () -> admin.deleteTopicInNameServer(Set.copyOf(admin.getNameServerAddressList()), TOPIC));
        show("examineTopicRouteInfo of what is deleted", () -> admin.examineTopicRouteInfo(TOPIC));
    }

    private interface Act {
        void run() throws Exception;
    }

    private static void done(String name, Act act) {
        show(name, () -> {
            act.run();
            return "done";
        });
    }

    private static void show(String name, Callable<Object> call) {
        Object came;
        try {
            came = plain(call.call(), 0);
        } catch (Exception error) {
            String words = String.valueOf(error.getMessage()).split("\n")[0];
            came = error.getClass().getSimpleName() + ": " + words;
        }
        System.out.println(name + " = " + came);
    }

    /** Maps and lists of words in an order of their own; other objects by what their getters give. */
    private static Object plain(Object value, int depth) throws Exception {
        if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean
            || value instanceof Enum || depth > DEPTH_MAX) {
            return String.valueOf(value);
        }
        if (value.getClass().isArray()) {
            return "[" + Array.getLength(value) + "]";
        }
        if (value instanceof Map) {
            Map<String, Object> sorted = new TreeMap<>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                sorted.put(String.valueOf(plain(entry.getKey(), depth + 1)), plain(entry.getValue(), depth + 1));
            }
            return sorted;
        }
        if (value instanceof Collection) {
            List<String> sorted = new ArrayList<>();
            for (Object item : (Collection<?>) value) {
                sorted.add(String.valueOf(plain(item, depth + 1)));
            }
            sorted.sort(null);
            return sorted;
        }
        return value.getClass().getName().startsWith("org.apache.rocketmq.") ? fields(value, depth) : value.toString();
    }

    private static Map<String, Object> fields(Object value, int depth) throws Exception {
        Map<String, Object> sorted = new TreeMap<>();
        for (Method method : value.getClass().getMethods()) {
            String name = method.getName();
            boolean isGetter = name.matches("(get|is)[A-Z].*") && method.getParameterCount() == 0;
            if (isGetter && !Modifier.isStatic(method.getModifiers()) && !name.equals("getClass")) {
                sorted.put(name.replaceFirst("^(get|is)", ""), plain(method.invoke(value), depth + 1));
            }
        }
        return sorted;
    }
}
